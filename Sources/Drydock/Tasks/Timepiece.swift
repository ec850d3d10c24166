// A clock of any kind as two functions of a time that counts from its making.

/// Sendable: it holds nothing that changes.
struct Timepiece: Sendable {
    /// How long ago it was made.
    let now: @Sendable () -> Duration
    /// Waits until it was made so long ago.
    /// - Throws: `CancellationError`.
    let sleep: @Sendable (_ until: Duration) async throws -> Void

    init(_ clock: some Clock<Duration>) {
        let start = clock.now
        now = { start.duration(to: clock.now) }
        sleep = { offset in try await clock.sleep(until: start.advanced(by: offset), tolerance: nil) }
    }
}
