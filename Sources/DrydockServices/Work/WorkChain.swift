// Steps of which each is made of the value of the one before.

/// Steps one after the other, each made of the value of the one before it.
///
/// ```swift
/// let photos = try await WorkChain(login)
///     .then { session in Work("profile") { try await profile(session) } }
///     .thenIfNeeded { profile in profile.isComplete ? nil : Work("details") { try await details(profile) } }
///     .then { profile in Work("photos") { try await photos(profile) } }
///     .run(on: queue)
/// ```
///
/// Each step is a task of the queue, with its own position in it and its own retries; the first one that fails ends the
/// chain. A chain is a description, and may be run as often as one likes. A queue whose only slot is taken by a closure
/// that runs a chain on the same queue waits for ever.
public struct WorkChain<Success: Sendable>: Sendable {
    private let steps: @Sendable (WorkQueue) async -> Result<Success, WorkError>

    private init(_ steps: @escaping @Sendable (WorkQueue) async -> Result<Success, WorkError>) {
        self.steps = steps
    }

    /// A chain of one step.
    public init(_ first: Work<Success>) {
        self.init { queue in await Self.result(of: first, on: queue) }
    }

    /// The same chain with another step behind it.
    /// - Parameter next: makes the step of the value before it; what it throws ends the chain with
    ///   ``WorkError/failed(_:)``.
    public func then<Next>(_ next: @escaping @Sendable (Success) async throws -> Work<Next>) -> WorkChain<Next> {
        let steps = steps
        return WorkChain<Next> { queue in
            switch await steps(queue) {
            case .failure(let error): return .failure(error)
            case .success(let value):
                do {
                    return await WorkChain<Next>.result(of: try await next(value), on: queue)
                } catch {
                    return .failure(.failed(error))
                }
            }
        }
    }

    /// The same chain with a step behind it that may be skipped.
    /// - Parameter next: makes the step of the value before it; nil skips it, and the value before it is the next one's.
    ///   What it throws ends the chain with ``WorkError/failed(_:)``.
    public func thenIfNeeded(
        _ next: @escaping @Sendable (Success) async throws -> Work<Success>?
    ) -> WorkChain<Success> {
        let steps = steps
        return WorkChain { queue in
            switch await steps(queue) {
            case .failure(let error): return .failure(error)
            case .success(let value):
                do {
                    guard let work = try await next(value) else { return .success(value) }
                    return await Self.result(of: work, on: queue)
                } catch {
                    return .failure(.failed(error))
                }
            }
        }
    }

    /// Runs the chain, and waits for its last value. A task that is cancelled meanwhile cancels the step that is under
    /// way.
    /// - Parameter queue: who runs the steps; ``WorkQueue/shared`` by default.
    /// - Throws: `WorkError`: that of the step that failed.
    public func run(on queue: WorkQueue = .shared) async throws(WorkError) -> Success {
        try await steps(queue).get()
    }

    private static func result(of work: Work<Success>, on queue: WorkQueue) async -> Result<Success, WorkError> {
        do throws(WorkError) {
            return .success(try await queue.run(work))
        } catch {
            return .failure(error)
        }
    }
}
