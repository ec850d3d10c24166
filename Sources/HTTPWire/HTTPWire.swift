// The room HTTPWire.
