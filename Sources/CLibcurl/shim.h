// libcurl as one C module, its variadic functions as typed ones: only the room Upstream imports it.
#ifndef DRYDOCK_CLIBCURL_SHIM_H
#define DRYDOCK_CLIBCURL_SHIM_H

#include <sys/types.h>
#include <curl/curl.h>

#endif
