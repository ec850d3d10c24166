// The room ServiceCore.
