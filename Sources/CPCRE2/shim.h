// PCRE2 for texts of bytes as one C module: only the room Matching imports it.
#ifndef DRYDOCK_CPCRE2_SHIM_H
#define DRYDOCK_CPCRE2_SHIM_H

#include <stddef.h>
#include <stdint.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#endif
