// How a request with Range is answered from a response that is stored as a whole, or that arrives as
// one (RFC 9110 section 14).

import CacheStore
import EventLoop
import HTTPCaching
import HTTPWire

extension Answer {
    /// The parts that a request asks for of a complete response; nil where it gets all of it.
    static func ranged(
        _ request: RequestHead,
        _ head: StoredHead,
        _ body: Body,
        age: Int64?,
        _ status: CacheStatus?,
        on loop: isolated EventLoop
    ) -> Answer? {
        guard let length = body.knownLength else { return nil }
        switch Caching.rangeAnswer(request: request, stored: head, length: length) {
        case .whole: return nil
        case .unsatisfiable: return unsatisfiable(length, status)
        case .parts(let ranges):
            var readers: [BodySequence.Part] = []
            for range in ranges {
                guard let reader = body.makeReader(range, on: loop) else { return nil }
                readers.append(.reader(reader))
            }
            return parts(ranges, of: head, length, readers, age: age, status, on: loop)
        }
    }

    /// A 206 with one part, or with several.
    /// - Parameter readers: one for each range.
    static func parts(
        _ ranges: [Range<Int64>],
        of head: StoredHead,
        _ length: Int64,
        _ readers: [BodySequence.Part],
        age: Int64?,
        _ status: CacheStatus?,
        on loop: isolated EventLoop
    ) -> Answer {
        if ranges.count == 1 {
            return Answer(
                head: Caching.partHead(stored: head, range: ranges[0], length: length),
                reader: BodyReader(BodySequence(readers), on: loop),
                length: ranges[0].upperBound - ranges[0].lowerBound,
                age: age,
                cacheStatus: status
            )
        }
        let boundary = (0..<2).map { _ in String(UInt64.random(in: 0 ... .max), radix: 36) }.joined()
        let multipart = Multipart(ranges: ranges, complete: length, stored: head.fields, boundary: boundary)
        let bytes = { (bytes: [UInt8]) in Body.complete(bytes).makeReader(on: loop).map { BodySequence.Part.reader($0) }
        }
        var sequence: [BodySequence.Part] = []
        for (index, reader) in readers.enumerated() {
            if let head = bytes(multipart.heads[index]) { sequence.append(head) }
            sequence.append(reader)
        }
        if let tail = bytes(multipart.tail) { sequence.append(tail) }
        return Answer(
            head: Caching.multipartHead(stored: head, multipart),
            reader: BodyReader(BodySequence(sequence), on: loop),
            length: multipart.length,
            age: age,
            cacheStatus: status
        )
    }

    /// 416 (RFC 9110 section 15.5.17).
    static func unsatisfiable(_ length: Int64, _ status: CacheStatus?) -> Answer {
        var answer = Answer(head: Caching.unsatisfiableHead(length: length), length: 0, cacheStatus: status)
        answer.isUnsatisfiable = true
        return answer
    }

    /// One part of a response that is still arriving and being stored. Several parts would wait for one another in
    /// memory, so a request for them gets the whole response, as it does while the length is unknown.
    static func arrivingPart(
        _ ask: CacheRequest,
        _ fetched: FetchedResponse,
        _ reader: BodyReader?,
        _ status: CacheStatus
    ) -> Answer? {
        guard var head = fetched.stored, let length = fetched.body.knownLength else { return nil }
        switch Caching.rangeAnswer(request: ask.request, stored: head, length: length) {
        case .unsatisfiable:
            reader?.close()
            return unsatisfiable(length, status)
        case .parts(let ranges) where ranges.count == 1:
            reader?.narrow(to: ranges[0])
            head.fields = fetched.head.fields
            return Answer(
                head: Caching.partHead(stored: head, range: ranges[0], length: length),
                reader: reader,
                length: ranges[0].upperBound - ranges[0].lowerBound,
                cacheStatus: status
            )
        case .parts, .whole: return nil
        }
    }
}
