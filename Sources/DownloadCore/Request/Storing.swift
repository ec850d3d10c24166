// The moment when an answer that was read to its end has reached the store.

package import EventLoop

/// Sendable: the latch is.
package struct Storing: Sendable {
    let end: Latch<Void>

    /// Waits until the answer is stored, or will never be; a cancelled task waits no longer.
    package func wait(on loop: isolated EventLoop) async { _ = await end.wait(patience: nil, on: loop) }
}
