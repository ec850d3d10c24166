// The calls of one loop that are under way: a new listener also hears of calls that began before it.

package import EventLoop
import HTTPWire

/// The list of a loop's calls, whatever plan is in force. Loop-bound, one for each loop.
package final class CallsUnderWay {
    package let hub: EventHub
    // Both lists are unchecked: no other code runs while they change, and a check would cost instructions with every
    // request.
    @exclusivity(unchecked) private var records: [CallRecord] = []
    /// The references are not retained: each call removes itself before it ends.
    @exclusivity(unchecked) private var direct: [Unmanaged<DirectCall>] = []

    private struct Weak {
        weak var calls: CallsUnderWay?
    }

    package init(_ hub: EventHub) { self.hub = hub }

    /// Makes the list of a loop, and adds it to the hub.
    package static func make(_ hub: EventHub, on loop: isolated EventLoop) -> CallsUnderWay {
        let calls = CallsUnderWay(hub)
        // The reference is weak: the calls hold the hub, which may live as long as they do.
        let box = LoopBox(Weak(calls: calls), on: loop)
        hub.add { _ = await box.run { weak, _ in weak.calls?.adopt() } }
        return calls
    }

    package var count: Int { records.count + direct.count }

    /// Makes calls known that began while there was no listener, and updates the others.
    func adopt() {
        for record in records { record.adopt() }
        for call in direct {
            // The call is alive: it removes itself from the list before it ends.
            call.takeUnretainedValue().adopt()
        }
    }

    fileprivate func add(_ call: DirectCall) {
        call.position = direct.count
        direct.append(.passUnretained(call))
    }

    fileprivate func remove(_ call: DirectCall) {
        let last = direct.removeLast().takeUnretainedValue()
        if last !== call {
            direct[call.position] = .passUnretained(last)
            last.position = call.position
        }
    }

    /// Keeps a record until it is removed.
    func add(_ record: CallRecord) {
        record.position = records.count
        records.append(record)
    }

    func remove(_ record: CallRecord) {
        guard let position = record.position, position < records.count, records[position] === record else { return }
        record.position = nil
        let last = records.removeLast()
        if last !== record {
            records[position] = last
            last.position = position
        }
    }
}

@available(*, unavailable) extension CallsUnderWay: Sendable {}

/// A call that is a single fetch, and has no record while there is no listener: a request that is passed on pays for
/// its entry in a list, and for no allocation. Loop-bound.
package class DirectCall {
    // All of these are unchecked: no other code runs while they change, and a check would cost instructions with every
    // request.
    @exclusivity(unchecked) private var calls: CallsUnderWay?
    @exclusivity(unchecked) private var destination: CallDestination?
    @exclusivity(unchecked) private var record: CallRecord?
    @exclusivity(unchecked) fileprivate var position = 0
    @exclusivity(unchecked) private var received: UInt64 = 0

    init() {}

    deinit { if calls != nil { endCall(.cancelled) } }

    /// The method and path of the request, with the status and the length of the answer's content if they are known;
    /// nil after the end.
    func askedNow() -> (method: Method, path: String, status: Int?, expected: UInt64?)? { nil }

    /// Adds the call to the list of its loop until ``endCall(_:)``.
    final func beginCall(_ calls: CallsUnderWay, _ destination: CallDestination) {
        self.calls = calls
        self.destination = destination
        calls.add(self)
        if calls.hub.isListening { adopt() }
    }

    fileprivate final func adopt() {
        if let record { return record.adopt() }
        guard let calls, let destination, let asked = askedNow() else { return }
        let record = CallRecord(destination, asked.method, asked.path, toSend: nil, in: calls, isListed: false)
        if let status = asked.status { record.answered(status, expected: asked.expected, in: record.run) }
        if received > 0 { record.received(received, in: record.run) }
        self.record = record
    }

    final func callAnswered(_ status: Int, expected: UInt64?) {
        if let record { record.answered(status, expected: expected, in: record.run) }
    }

    final func callReceived(_ count: Int) {
        received &+= UInt64(truncatingIfNeeded: count)
        if let record { record.received(UInt64(truncatingIfNeeded: count), in: record.run) }
    }

    final func endCall(_ end: CallEnd) {
        guard let calls else { return }
        self.calls = nil
        calls.remove(self)
        guard let record else { return }
        self.record = nil
        record.end(end, in: record.run)
    }
}

@available(*, unavailable) extension DirectCall: Sendable {}
