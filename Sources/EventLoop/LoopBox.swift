// A loop-bound object that other threads may send work to.

/// `@unchecked Sendable`: `value` is touched on `loop` only, by `run`, `submit` and `take`.
package final class LoopBox<Value>: @unchecked Sendable {  // protected as the comment above says
    package nonisolated let loop: EventLoop
    private var value: Value?

    /// Makes the object on its loop.
    package init(on loop: isolated EventLoop, _ make: (isolated EventLoop) throws -> Value) rethrows {
        self.loop = loop
        value = try make(loop)
    }

    /// Holds an object of the loop.
    package init(_ value: Value, on loop: isolated EventLoop) {
        self.loop = loop
        self.value = value
    }

    /// Runs `body` on the loop, unless the object has been taken out.
    package func submit(_ body: @escaping @Sendable (Value, isolated EventLoop) -> Void) {
        loop.submit { loop in
            if let value = self.value { body(value, loop) }
        }
    }

    /// Runs `body` on the loop and waits for it; nil when the object has been taken out.
    package func run<Result: Sendable>(
        _ body: @escaping @Sendable (Value, isolated EventLoop) async -> Result
    ) async -> Result? {
        await withUnsafeContinuation { (continuation: UnsafeContinuation<Result?, Never>) in
            loop.submit { loop in
                guard let value = self.value else { return continuation.resume(returning: nil) }
                Task.immediate(executorPreference: loop.taskExecutor) {
                    continuation.resume(returning: await body(value, loop))
                }
            }
        }
    }

    /// The object, for code on its loop.
    package func value(on loop: isolated EventLoop) -> Value? {
        precondition(loop === self.loop, "a loop-bound object was asked for on another loop")
        return value
    }

    /// Takes the object out, so that it ends on its loop.
    package func take(on loop: isolated EventLoop) -> Value? {
        defer { value = nil }
        return value
    }
}
