// Tests of HTTPCaching.
