// The moment when an answer that was read to its end has reached the store.

package import EventLoop

/// Sendable: the latch is.
package struct StoreCompletion: Sendable {
    let end: Latch<UnstoredReason?>

    /// The answer is stored, or will never be.
    package var isOver: Bool { end.value != nil }

    /// Waits until the answer is stored or its storing has failed; cancelling the task ends the wait.
    /// - Returns: why it is not stored; nil where it is, or where the wait was cancelled.
    @discardableResult
    package func wait(on loop: isolated EventLoop) async -> UnstoredReason? {
        await end.wait(timeout: nil, on: loop) ?? nil
    }
}
