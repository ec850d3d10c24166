// libcurl as one C module, its variadic functions as typed ones: only the room Upstream imports it.
#ifndef DRYDOCK_CLIBCURL_SHIM_H
#define DRYDOCK_CLIBCURL_SHIM_H

#include <sys/types.h>
#include <dlfcn.h>
// The checks of curl/typecheck-gcc.h need constant options; the functions below check by their signatures.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

// One function per C signature of https://curl.se/libcurl/c/curl_easy_setopt.html

static inline CURLcode c_curl_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode c_curl_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(easy, option, value);
}

// libcurl copies the string.
static inline CURLcode c_curl_set_string(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}

// libcurl keeps the pointer: contexts, the error buffer.
static inline CURLcode c_curl_set_pointer(CURL *easy, CURLoption option, void *value) {
    return curl_easy_setopt(easy, option, value);
}

// libcurl keeps the pointer to the list.
static inline CURLcode c_curl_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(easy, option, value);
}

// CURLOPT_WRITEFUNCTION, CURLOPT_HEADERFUNCTION, CURLOPT_READFUNCTION
static inline CURLcode c_curl_set_data_function(
    CURL *easy, CURLoption option, size_t (*function)(char *, size_t, size_t, void *)
) {
    return curl_easy_setopt(easy, option, function);
}

static inline CURLcode c_curl_set_prereq_function(CURL *easy, curl_prereq_callback function) {
    return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, function);
}

static inline CURLcode c_curl_set_resolver_start_function(CURL *easy, curl_resolver_start_callback function) {
    return curl_easy_setopt(easy, CURLOPT_RESOLVER_START_FUNCTION, function);
}

static inline CURLcode c_curl_set_open_socket_function(CURL *easy, curl_opensocket_callback function) {
    return curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, function);
}

static inline CURLcode c_curl_set_close_socket_function(CURL *easy, curl_closesocket_callback function) {
    return curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, function);
}

static inline CURLcode c_curl_set_debug_function(CURL *easy, curl_debug_callback function) {
    return curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, function);
}

// https://curl.se/libcurl/c/curl_easy_getinfo.html

static inline long c_curl_get_long(CURL *easy, CURLINFO info) {
    long value = 0;
    return curl_easy_getinfo(easy, info, &value) == CURLE_OK ? value : 0;
}

static inline void *c_curl_get_private(CURL *easy) {
    char *value = NULL;
    return curl_easy_getinfo(easy, CURLINFO_PRIVATE, &value) == CURLE_OK ? value : NULL;
}

// The socket of the connection that a transfer left in the cache; -1 where it left none.
static inline curl_socket_t c_curl_get_active_socket(CURL *easy) {
    curl_socket_t value = CURL_SOCKET_BAD;
    return curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &value) == CURLE_OK ? value : CURL_SOCKET_BAD;
}

// Bytes that OpenSSL has decrypted for this handle's connection and nobody has read; 0 for a plain connection.
static inline int c_curl_get_tls_pending(CURL *easy) {
    struct curl_tlssessioninfo *session = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK || !session || !session->internals) return 0;
    if (session->backend != CURLSSLBACKEND_OPENSSL) return 0;
    // libcurl has loaded libssl already; looking the symbol up spares a dependency on its headers.
    int (*pending)(const void *) = (int (*)(const void *))dlsym(NULL, "SSL_pending");
    return pending ? pending(session->internals) : 0;
}

// https://curl.se/libcurl/c/curl_multi_setopt.html

static inline CURLMcode c_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

static inline CURLMcode c_curl_multi_set_pointer(CURLM *multi, CURLMoption option, void *value) {
    return curl_multi_setopt(multi, option, value);
}

static inline CURLMcode c_curl_multi_set_socket_function(CURLM *multi, curl_socket_callback function) {
    return curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, function);
}

static inline CURLMcode c_curl_multi_set_timer_function(CURLM *multi, curl_multi_timer_callback function) {
    return curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, function);
}

// The result of a finished transfer; the union is out of Swift's sight.
static inline CURLcode c_curl_message_result(const CURLMsg *message) { return message->data.result; }

// The library's own list of authorities, to go back to after a request with its own.
static inline const char *c_curl_default_ca_file(void) { return curl_version_info(CURLVERSION_NOW)->cainfo; }
static inline const char *c_curl_default_ca_path(void) { return curl_version_info(CURLVERSION_NOW)->capath; }

#endif
