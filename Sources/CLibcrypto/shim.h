// OpenSSL's digests, for the one room that imports them.
#include <sys/types.h>
#include <openssl/evp.h>
