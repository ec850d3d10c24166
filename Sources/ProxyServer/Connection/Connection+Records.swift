// What an answer leaves behind: one access log line and the counters.

import EventLoop
import HTTPWire

extension Connection {
    /// Whether answers of this listener are logged and counted.
    private var isRecorded: Bool { listener.role == .proxy }

    /// A complete answer of the hot path: nothing is allocated.
    func recordHot(_ record: HotRecord, bodyBytes: Int) {
        guard isRecorded else { return }
        context.counters.add(.answers(record.status))
        context.counters.add(.cache(record.cache))
        guard context.isLogging, let log = context.log else { return }
        var entry = borrowedEntry(record)
        entry.bytes = bodyBytes
        entry.duration = Monotonic.now() &- requestBegan
        log.write(entry)
    }

    /// What the log will say of an answer of the hot path that is not written yet.
    func hotEntry(_ record: HotRecord) -> AccessEntry {
        var entry = borrowedEntry(record)
        entry.own()
        return entry
    }

    private func borrowedEntry(_ record: HotRecord) -> AccessEntry {
        let bytes = input.bytes
        var entry = AccessEntry(
            client: client,
            method: parser.pointee.method.name,
            target: .bytes(bytes.part(parser.pointee.targetRange)),
            status: record.status
        )
        entry.version = parser.pointee.version
        entry.route = record.route.name
        entry.cacheStatus = .bytes(record.cacheStatus)
        if context.log?.needsID == true {
            entry.id = takenID(in: bytes).map { .bytes($0) } ?? .digits(context.nextRequestID())
            entry.host = parser.pointee.value(.host, in: bytes).map { .bytes($0) }
        }
        if context.log?.needsAgent == true {
            entry.referer = parser.pointee.value(.referer, in: bytes).map { LoggedReferer.text($0, context.secrets) }
            entry.userAgent = parser.pointee.value(.userAgent, in: bytes).map { .bytes($0) }
        }
        return entry
    }

    /// The answer under way is over, completely written or not.
    func finishRecord(isAborted: Bool) {
        if let pending = pendingHot {
            pendingHot = nil
            record(pending.entry, cache: pending.cache, bytes: pending.bodyBytes, isAborted: isAborted)
        } else if let exchange = current {
            record(exchange, bytes: framing.contentBytes, isAborted: isAborted)
        }
    }

    /// - Parameter bytes: of the body, those still queued included.
    func record(_ exchange: Exchange, bytes: Int, isAborted: Bool) {
        guard !exchange.isRecorded else { return }
        exchange.isRecorded = true
        // As nginx writes it: a client that left before there was an answer.
        let status = exchange.status ?? 499
        guard context.isLogging || exchange.trace != nil else {
            return count(status, exchange.outcome.cache, isAborted: isAborted)
        }
        var entry = AccessEntry(
            client: client,
            method: exchange.request.method.name,
            target: .string(exchange.request.target),
            status: status
        )
        entry.version = exchange.request.version
        entry.route = exchange.outcome.route
        entry.cacheStatus = .string(exchange.outcome.cacheStatus)
        entry.upstreamStatus = exchange.outcome.upstreamStatus
        entry.upstreamTime = exchange.outcome.upstreamTime
        entry.error = exchange.outcome.error
        if context.log?.needsID == true {
            entry.id = .string(exchange.requestID.text)
            entry.host = exchange.request.fields.first(.host).map { .string($0) }
        }
        if context.log?.needsAgent == true {
            entry.referer = exchange.request.fields.first(.referer).map {
                .string(LoggedReferer.text($0, context.secrets))
            }
            entry.userAgent = exchange.request.fields.first(.userAgent).map { .string($0) }
        }
        if let trace = exchange.trace {
            entry.bytes = bytes
            entry.isAborted = isAborted
            trace.tellEnd(entry)
        }
        record(entry, cache: exchange.outcome.cache, bytes: bytes, isAborted: isAborted)
    }

    private func count(_ status: Int, _ cache: CacheOutcome, isAborted: Bool) {
        guard isRecorded else { return }
        context.counters.add(.answers(status))
        context.counters.add(.cache(cache))
        if isAborted { context.counters.add(.errorAborted) }
    }

    private func record(_ entry: AccessEntry, cache: CacheOutcome, bytes: Int, isAborted: Bool) {
        count(entry.status, cache, isAborted: isAborted)
        guard isRecorded, let log = context.log, log.isOn else { return }
        var entry = entry
        entry.bytes = isAborted ? max(0, bytes - output.count) : bytes
        entry.isAborted = isAborted
        entry.duration = Monotonic.now() &- requestBegan
        log.write(entry)
    }
}

extension Connection {
    /// The id that the client gives in the head in the read buffer, where it lies; nil where it gives none that may be taken.
    func takenID(in bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        guard parser.pointee.present.contains(.other) else { return nil }
        for entry in parser.pointee.entries where entry.known == .other {
            guard entry.name(in: bytes).equalsIgnoringCase(RequestID.field) else { continue }
            let value = entry.value(in: bytes)
            return RequestID.isSafe(value) ? value : nil
        }
        return nil
    }
}
