// One run of a group: its calls are the items of a batch, each made with the values that earlier ones have taken.

import CacheStore
package import DownloadCore
package import EventLoop
import HTTPWire
import Policies
import Synchronization

/// Finds the route of a group's request, as that of a client's request.
package typealias GroupRouter =
    @Sendable (GroupRequest, isolated EventLoop) async throws(BatchRefusal) -> BatchRoute

/// A run of a group, for a batch: ``batch`` has an item for each call, and ``route(_:on:)`` finds the call of an item.
/// A run that is retried keeps the values that it has taken.
///
/// Sendable: the values are under a mutex.
package final class GroupRun: Sendable {
    /// The most bytes of an answer's body from which values are taken; a longer body is an error.
    package static let longestBody = 1 << 20
    /// The statuses of a success: a log-in may end with a redirect.
    package static let accepted = 200..<400

    package let plan: GroupPlan
    private let core: DownloadCore
    private let router: GroupRouter
    private let positions: [String: Int]
    private let values = Mutex(GroupValues())
    private let end = Mutex<End?>(nil)

    /// The closure that ends the run. It is in an object, since a closure directly under a mutex would be wrapped once
    /// more at each look.
    private final class End: Sendable {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// - Parameter router: finds the route of each request.
    package init(_ plan: GroupPlan, core: DownloadCore, router: @escaping GroupRouter) {
        self.plan = plan
        self.core = core
        self.router = router
        positions = Dictionary(zip(plan.labels, plan.calls.indices)) { first, _ in first }
    }

    /// Sets the closure that ends the whole run; it is called if an operator ends a fetch of a call.
    package func onStop(_ end: @escaping @Sendable () -> Void) {
        self.end.exchange(End(end))
    }

    /// The calls as items of a batch, by their labels. The items have no values in them, and may be shown and kept.
    package var batch: Batch {
        let items = zip(plan.labels, plan.calls).map { BatchItem(url: $0, method: $1.method) }
        let onError: BatchFailurePolicy =
            switch plan.onError {
            case .stop: .stop
            case .continue: .continue
            case .cancel: .cancelRest
            }
        let concurrency = plan.mode == .serial ? 1 : max(1, items.count)
        return Batch(items, options: BatchOptions(concurrency: concurrency, onError: onError))
    }

    /// The route of an item's call; the call is made when its answer is asked for.
    /// - Throws: a refusal if the item is not one of this run.
    package func route(_ item: BatchItem, on loop: isolated EventLoop) throws(BatchRefusal) -> BatchRoute {
        guard let index = positions[item.url] else { throw BatchRefusal("'\(item.url)' is no call of this group") }
        // Each call has a key of its own, even if two calls make the same request.
        let key = CacheKey(service: "group \(plan.name)", url: "\(index)")
        return .other(key) { () async throws(BatchRefusal) in try await self.answer(index, on: loop) }
    }

    private func answer(_ index: Int, on loop: isolated EventLoop) async throws(BatchRefusal) -> Answer {
        let call = plan.calls[index]
        let values = self.values.withLock { $0 }
        guard values.allow(call) else {
            throw BatchRefusal("the value '\(call.condition?.name ?? "")' does not want it", isSkip: true)
        }
        let request = try values.request(call)
        let answer: Answer
        switch try await way(of: request, values, on: loop) {
        case .store(var ask, let source):
            // A call ends with its answer: neither a stale response nor a stand-in may be it.
            ask.request.fields.appendMember(.cacheControl, "min-fresh=0")
            ask.phases?.placeholder = nil
            ask.phases?.fallback = nil
            // A run that ends also ends its fetches.
            ask.onClientAbort = .abort
            answer = await core.answer(ask, from: source, on: loop)
        case .other(_, let make): answer = try await make()
        }
        if case .stopped? = answer.failure {
            end.withLock { $0 }?.run()
            return answer
        }
        guard !call.take.isEmpty, answer.failure == nil, Self.accepted.contains(answer.head.status) else {
            return answer
        }
        return try await taking(call, answer, on: loop)
    }

    /// Finds the route of a request.
    /// - Throws: the refusal of the request, with the values hidden.
    private func way(
        of request: GroupRequest,
        _ values: GroupValues,
        on loop: isolated EventLoop
    ) async throws(BatchRefusal) -> BatchRoute {
        do throws(BatchRefusal) {
            return try await router(request, loop)
        } catch {
            throw BatchRefusal(values.hidden(in: error.description))
        }
    }

    /// Takes the values of a call from its answer, and returns the answer with a body that can be read once more.
    private func taking(
        _ call: GroupCall,
        _ answer: Answer,
        on loop: isolated EventLoop
    ) async throws(BatchRefusal) -> Answer {
        var answer = answer
        var body: [UInt8] = []
        if call.takesFromBody, let reader = answer.reader {
            defer { reader.close() }
            do throws(BodyError) {
                while let piece = try await reader.next(maxBytes: 1 << 18, on: loop) {
                    guard body.count + piece.count <= Self.longestBody else {
                        throw BodyError.source("it is longer than 1 MiB, and values are taken from it")
                    }
                    let part = try await piece.load(on: loop)
                    part.chunk.withBytes { body += UnsafeRawBufferPointer(rebasing: $0[part.range]) }
                }
            } catch {
                throw BatchRefusal("the answer's body cannot be read: \(error)")
            }
            answer.reader = Body.complete(body).makeReader(on: loop)
        }
        // The values are found off the loop: a long body takes long to decode.
        let (status, fields) = (answer.head.status, answer.head.fields)
        let taken = await Task.detached { [body] () -> Result<GroupValues, BatchRefusal> in
            var found = GroupValues()
            do throws(BatchRefusal) { try found.take(call, status: status, fields, body: body) } catch {
                return .failure(error)
            }
            return .success(found)
        }.value
        do throws(BatchRefusal) {
            let found = try taken.get()
            values.withLock { $0.merge(found) }
        } catch {
            answer.reader?.close()
            throw error
        }
        return answer
    }
}
