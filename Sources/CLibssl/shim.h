// OpenSSL's TLS and X.509 as one C module, its macros as functions: only the module TLS imports it.
#ifndef DRYDOCK_CLIBSSL_SHIM_H
#define DRYDOCK_CLIBSSL_SHIM_H

#include <sys/types.h>
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// MARK: contexts

static inline void c_ssl_ctx_set_modes(SSL_CTX *context, long modes) { SSL_CTX_set_mode(context, modes); }

static inline int c_ssl_ctx_set_versions(SSL_CTX *context, int least, int most) {
    return SSL_CTX_set_min_proto_version(context, least) && SSL_CTX_set_max_proto_version(context, most);
}

static inline void c_ssl_ctx_set_read_ahead(SSL_CTX *context) { SSL_CTX_set_read_ahead(context, 1); }

static inline long c_ssl_ctx_set_cache_mode(SSL_CTX *context, long mode) {
    return SSL_CTX_set_session_cache_mode(context, mode);
}

static inline int c_ssl_ctx_set_ticket_keys(
    SSL_CTX *context, int (*choose)(SSL *, unsigned char *, unsigned char *, EVP_CIPHER_CTX *, EVP_MAC_CTX *, int)
) {
    return (int) SSL_CTX_set_tlsext_ticket_key_evp_cb(context, choose);
}

// No renegotiation (TLS 1.2), which only costs.
static inline void c_ssl_ctx_refuse_renegotiation(SSL_CTX *context) { SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION); }

static inline void c_ssl_ctx_refuse_tickets(SSL_CTX *context) { SSL_CTX_set_options(context, SSL_OP_NO_TICKET); }

// MARK: sessions

static inline int c_ssl_set_host(SSL *session, const char *name) {
    return (int) SSL_set_tlsext_host_name(session, name);
}

// The certificates of a chain are the session's from now on as well: their counts are raised.
static inline int c_ssl_use_chain(SSL *session, X509 *leaf, EVP_PKEY *key, STACK_OF(X509) *rest) {
    return SSL_use_cert_and_key(session, leaf, key, rest, 1);
}

static inline void *c_ssl_owner(const SSL *session) { return SSL_get_app_data(session); }

static inline void c_ssl_set_owner(SSL *session, void *owner) { SSL_set_app_data(session, owner); }

static inline X509 *c_ssl_peer(const SSL *session) { return SSL_get1_peer_certificate(session); }

// MARK: the way of bytes

static inline void c_bio_set_retry_read(BIO *bio) { BIO_clear_retry_flags(bio); BIO_set_retry_read(bio); }

static inline void c_bio_clear_retry(BIO *bio) { BIO_clear_retry_flags(bio); }

// MARK: certificates

static inline STACK_OF(X509) *c_x509_stack(void) { return sk_X509_new_null(); }

static inline int c_x509_push(STACK_OF(X509) *stack, X509 *certificate) {
    if (!X509_up_ref(certificate)) return 0;
    if (sk_X509_push(stack, certificate) > 0) return 1;
    X509_free(certificate);
    return 0;
}

static inline void c_x509_free_stack(STACK_OF(X509) *stack) { sk_X509_pop_free(stack, X509_free); }

static inline int c_x509_name_print(BIO *bio, const X509_NAME *name) {
    return X509_NAME_print_ex(bio, name, 0, XN_FLAG_RFC2253) >= 0;
}

static inline int c_general_name_count(const GENERAL_NAMES *names) { return sk_GENERAL_NAME_num(names); }

static inline const GENERAL_NAME *c_general_name(const GENERAL_NAMES *names, int index) {
    return sk_GENERAL_NAME_value(names, index);
}

static inline EVP_PKEY *c_new_p256(void) { return EVP_EC_gen("P-256"); }

// Nobody is asked for the password of a key: the daemon has no terminal.
static inline int c_pem_refuse_password(char *buffer, int size, int is_writing, void *context) {
    (void) buffer, (void) size, (void) is_writing, (void) context;
    return -1;
}

static inline X509 *c_pem_read_x509(BIO *bio) { return PEM_read_bio_X509(bio, NULL, c_pem_refuse_password, NULL); }

static inline EVP_PKEY *c_pem_read_key(BIO *bio) { return PEM_read_bio_PrivateKey(bio, NULL, c_pem_refuse_password, NULL); }

// MARK: tickets

static inline int c_mac_set_key(EVP_MAC_CTX *context, unsigned char *key, size_t count) {
    OSSL_PARAM params[3];
    params[0] = OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key, count);
    params[1] = OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *) "SHA256", 0);
    params[2] = OSSL_PARAM_construct_end();
    return EVP_MAC_CTX_set_params(context, params);
}

// MARK: errors

static inline int c_err_reason(unsigned long error) { return ERR_GET_REASON(error); }

static inline int c_err_library(unsigned long error) { return ERR_GET_LIB(error); }

#endif
