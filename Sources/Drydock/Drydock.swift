// The room Drydock.
