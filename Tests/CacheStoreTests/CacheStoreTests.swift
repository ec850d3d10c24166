// Tests of CacheStore.
