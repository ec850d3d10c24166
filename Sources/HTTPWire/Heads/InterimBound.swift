// The bound on interim responses (1xx) to one request, for every carrier.

/// Without a bound, an origin that never comes to the final response fills the memory.
public enum InterimBound {
    public static let maximumHeads = 100
    /// Of all their heads together.
    public static let maximumBytes = 256 << 10
}
