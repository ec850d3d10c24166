// Tests of HTTPWire.
