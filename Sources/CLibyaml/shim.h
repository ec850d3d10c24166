// libyaml's parser as one C module: only the room YAML imports it.
#ifndef DRYDOCK_CLIBYAML_SHIM_H
#define DRYDOCK_CLIBYAML_SHIM_H

#include <sys/types.h>
#include <yaml.h>

#endif
