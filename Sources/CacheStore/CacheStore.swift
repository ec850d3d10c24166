// The room CacheStore.
