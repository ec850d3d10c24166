// libevent's core as one C module: only the room EventLoop imports it.
#ifndef DRYDOCK_CLIBEVENT_SHIM_H
#define DRYDOCK_CLIBEVENT_SHIM_H

// First of all: Debian's event-config.h defines _GNU_SOURCE, and debug builds miss fd_set without this.
#include <sys/types.h>
#include <sys/time.h>
#include <event2/event.h>
#include <event2/event_struct.h>

#endif
