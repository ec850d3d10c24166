// Waiting for what happens behind an answer.

/// Polls until something holds, for two minutes at most: a sanitizer makes everything ten times slower.
/// - Returns: false where it never held.
package func eventually(_ holds: () async -> Bool) async -> Bool {
    for _ in 0..<60_000 {
        if await holds() { return true }
        try? await Task.sleep(nanoseconds: 2_000_000)
    }
    return false
}
