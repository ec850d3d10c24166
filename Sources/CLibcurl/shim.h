// libcurl as one C module, its variadic functions as typed ones: only the room Upstream imports it.
#ifndef DRYDOCK_CLIBCURL_SHIM_H
#define DRYDOCK_CLIBCURL_SHIM_H

#include <sys/types.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
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

// What OpenSSL tells of each TLS message; the types of SSL_set_msg_callback, without its headers.
typedef void (*c_curl_tls_message)(
    int is_sent, int version, int type, const void *bytes, size_t length, void *session, void *context
);

// Has the TLS messages of this handle's connection told from now on; libcurl has no option for that which reaches a connection that stands.
// The session to tell it by; NULL where messages cannot be seen, such as with another TLS library.
static inline const void *c_curl_hear_tls(CURL *easy, c_curl_tls_message heard, void *context) {
    struct curl_tlssessioninfo *session = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK || !session || !session->internals) return NULL;
    if (session->backend != CURLSSLBACKEND_OPENSSL) return NULL;
    // As above: libssl is there already.
    void (*set)(void *, c_curl_tls_message) = (void (*)(void *, c_curl_tls_message))dlsym(NULL, "SSL_set_msg_callback");
    long (*control)(void *, int, long, void *) = (long (*)(void *, int, long, void *))dlsym(NULL, "SSL_ctrl");
    if (!set || !control) return NULL;
    // SSL_CTRL_SET_MSG_CALLBACK_ARG, which SSL_set_msg_callback_arg stands for.
    control(session->internals, 16, 0, context);
    set(session->internals, heard);
    return session->internals;
}

// libcurl calls it before the TLS handshake of each new connection of the handle.
static inline CURLcode c_curl_set_tls_function(CURL *easy, curl_ssl_ctx_callback function) {
    return curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, function);
}

// Checks a certificate chain in the place of OpenSSL's own check; what X509_verify_cert answers.
typedef int (*c_curl_verify)(void *chain, void *context);

// `tls` is what the function above is given. False with another TLS library, or an older one.
static inline bool c_curl_set_verify(void *tls, c_curl_verify verify, void *context) {
    void (*set)(void *, c_curl_verify, void *) =
        (void (*)(void *, c_curl_verify, void *))dlsym(NULL, "SSL_CTX_set_cert_verify_callback");
    if (!set || !dlsym(NULL, "X509_verify_cert")) return false;
    set(tls, verify, context);
    return true;
}

// The context that a chain is checked for, to be compared only: the `tls` of c_curl_set_verify.
static inline const void *c_curl_chain_owner(const void *chain) {
    int (*index_of_owner)(void) = (int (*)(void))dlsym(NULL, "SSL_get_ex_data_X509_STORE_CTX_idx");
    void *(*data)(const void *, int) = (void *(*)(const void *, int))dlsym(NULL, "X509_STORE_CTX_get_ex_data");
    void *(*owner)(const void *) = (void *(*)(const void *))dlsym(NULL, "SSL_get_SSL_CTX");
    if (!index_of_owner || !data || !owner) return NULL;
    void *session = data(chain, index_of_owner());
    return session ? owner(session) : NULL;
}

// The certificates that the server has shown, its own first; told as DER, one after the other. Its public key is told first, as the DER of its
// SubjectPublicKeyInfo. Nothing is told where they cannot be read.
typedef void (*c_curl_shown)(const void *der, int length, void *context);

static inline void c_curl_tell_der(const void *object, const char *encoder, c_curl_shown shown, void *context) {
    int (*encode)(const void *, unsigned char **) = (int (*)(const void *, unsigned char **))dlsym(NULL, encoder);
    int length = encode && object ? encode(object, NULL) : 0;
    if (length <= 0) return;
    unsigned char *bytes = malloc((size_t)length);
    if (!bytes) return;
    // The encoder moves its pointer.
    unsigned char *end = bytes;
    if (encode(object, &end) == length) shown(bytes, length, context);
    free(bytes);
}

static inline void c_curl_tell_chain(const void *chain, c_curl_shown shown, void *context) {
    const void *(*own)(const void *) = (const void *(*)(const void *))dlsym(NULL, "X509_STORE_CTX_get0_cert");
    const void *(*sent)(const void *) = (const void *(*)(const void *))dlsym(NULL, "X509_STORE_CTX_get0_untrusted");
    const void *(*key)(const void *) = (const void *(*)(const void *))dlsym(NULL, "X509_get_X509_PUBKEY");
    int (*count)(const void *) = (int (*)(const void *))dlsym(NULL, "OPENSSL_sk_num");
    const void *(*item)(const void *, int) = (const void *(*)(const void *, int))dlsym(NULL, "OPENSSL_sk_value");
    const void *first = own ? own(chain) : NULL;
    if (!first || !sent || !key || !count || !item) return;
    c_curl_tell_der(key(first), "i2d_X509_PUBKEY", shown, context);
    c_curl_tell_der(first, "i2d_X509", shown, context);
    const void *all = sent(chain);
    for (int index = 0; all && index < count(all); index++) {
        // The list begins with the server's own.
        if (item(all, index) != first) c_curl_tell_der(item(all, index), "i2d_X509", shown, context);
    }
}

// SHA-256 in Base64, 44 characters and a NUL. False where there is none.
static inline bool c_curl_digest(const void *bytes, size_t length, char digest[45]) {
    const void *(*algorithm)(void) = (const void *(*)(void))dlsym(NULL, "EVP_sha256");
    int (*hash)(const void *, size_t, unsigned char *, unsigned int *, const void *, void *) =
        (int (*)(const void *, size_t, unsigned char *, unsigned int *, const void *, void *))dlsym(NULL, "EVP_Digest");
    int (*encode)(unsigned char *, const unsigned char *, int) =
        (int (*)(unsigned char *, const unsigned char *, int))dlsym(NULL, "EVP_EncodeBlock");
    unsigned char raw[64];
    unsigned int count = 0;
    if (!algorithm || !hash || !encode || hash(bytes, length, raw, &count, algorithm(), NULL) != 1 || count != 32) return false;
    return encode((unsigned char *)digest, raw, 32) == 44;
}

// Called when a server asks for a certificate; 0 ends the handshake, 1 goes on without one.
typedef int (*c_curl_wanted)(void *session, void *context);

// `tls` is what the function above is given. False with another TLS library.
static inline bool c_curl_set_wanted(void *tls, c_curl_wanted wanted, void *context) {
    void (*set)(void *, c_curl_wanted, void *) = (void (*)(void *, c_curl_wanted, void *))dlsym(NULL, "SSL_CTX_set_cert_cb");
    if (!set) return false;
    set(tls, wanted, context);
    return true;
}

// The context of a session, to be compared only.
static inline const void *c_curl_session_owner(const void *session) {
    void *(*owner)(const void *) = (void *(*)(const void *))dlsym(NULL, "SSL_get_SSL_CTX");
    return owner ? owner(session) : NULL;
}

// Whether the certificate that the server has shown is for this name or address.
static inline bool c_curl_is_for(const void *session, const char *host, bool is_address) {
    void *(*shown)(const void *) = (void *(*)(const void *))dlsym(NULL, "SSL_get1_peer_certificate");
    int (*name)(void *, const char *, size_t, unsigned int, char **) =
        (int (*)(void *, const char *, size_t, unsigned int, char **))dlsym(NULL, "X509_check_host");
    int (*address)(void *, const char *, unsigned int) =
        (int (*)(void *, const char *, unsigned int))dlsym(NULL, "X509_check_ip_asc");
    void (*release)(void *) = (void (*)(void *))dlsym(NULL, "X509_free");
    void *certificate = shown ? shown(session) : NULL;
    if (!certificate || !name || !address || !release) return false;
    bool fits = is_address ? address(certificate, host, 0) == 1 : name(certificate, host, 0, 0, NULL) == 1;
    release(certificate);
    return fits;
}

// What is wrong with a certificate. Times are Unix seconds, 0 where they cannot be read.
typedef struct {
    // X509_V_ERR_…
    int code;
    // 0 is the server's own, 1 that of its authority, and so on.
    int depth;
    time_t not_before;
    time_t not_after;
} c_curl_bad_certificate;

static inline time_t c_curl_certificate_time(const void *certificate, const char *getter) {
    const void *(*get)(const void *) = (const void *(*)(const void *))dlsym(NULL, getter);
    int (*parse)(const void *, struct tm *) = (int (*)(const void *, struct tm *))dlsym(NULL, "ASN1_TIME_to_tm");
    struct tm parts = {0};
    if (!get || !parse || !certificate || parse(get(certificate), &parts) != 1) return 0;
    return timegm(&parts);
}

// OpenSSL's own check, and what it has found where it fails.
static inline int c_curl_verify_chain(void *chain, c_curl_bad_certificate *bad) {
    int (*verify)(void *) = (int (*)(void *))dlsym(NULL, "X509_verify_cert");
    int result = verify ? verify(chain) : 0;
    if (result > 0) return result;
    int (*code)(const void *) = (int (*)(const void *))dlsym(NULL, "X509_STORE_CTX_get_error");
    int (*depth)(const void *) = (int (*)(const void *))dlsym(NULL, "X509_STORE_CTX_get_error_depth");
    void *(*current)(const void *) = (void *(*)(const void *))dlsym(NULL, "X509_STORE_CTX_get_current_cert");
    if (!code || !depth || !current) return 0;
    bad->code = code(chain);
    bad->depth = depth(chain);
    bad->not_before = c_curl_certificate_time(current(chain), "X509_get0_notBefore");
    bad->not_after = c_curl_certificate_time(current(chain), "X509_get0_notAfter");
    return 0;
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
