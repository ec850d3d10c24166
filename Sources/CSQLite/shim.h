// SQLite as one C module: only the room SQLite imports it.
#ifndef DRYDOCK_CSQLITE_SHIM_H
#define DRYDOCK_CSQLITE_SHIM_H

#include <sys/types.h>
#include <sqlite3.h>

// SQLITE_TRANSIENT is a cast that Swift cannot import: SQLite copies the bytes before these return. A null pointer would bind
// NULL, and Swift may have one for nothing.

static inline int c_sqlite_bind_text(sqlite3_stmt *statement, int position, const char *text, size_t length) {
    return sqlite3_bind_text64(statement, position, text ? text : "", length, SQLITE_TRANSIENT, SQLITE_UTF8);
}

static inline int c_sqlite_bind_blob(sqlite3_stmt *statement, int position, const void *bytes, size_t length) {
    return sqlite3_bind_blob64(statement, position, bytes ? bytes : "", length, SQLITE_TRANSIENT);
}

#endif
