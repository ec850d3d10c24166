// The room HTTPCaching.
