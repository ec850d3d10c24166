// The state of the resolver: cached answers until they expire, and the waiters of each name.

package import EventLoop

/// The outcome of resolving a name.
package enum ResolverAnswer: Sendable, Equatable {
    case addresses([SocketAddress])
    case notFound
    /// The resolver could not tell; the text says why.
    case failed(String)
}

struct ResolverKey: Hashable, Sendable {
    /// Lower case, without brackets.
    let host: String
    let port: UInt16

    init(host: String, port: UInt16) {
        let isBracketed = host.utf8.first == UInt8(ascii: "[") && host.utf8.last == UInt8(ascii: "]")
        let bare = isBracketed ? String(host.dropFirst().dropLast()) : host
        self.host = bare.utf8.contains { (0x41...0x5A).contains($0) } ? bare.lowercased() : bare
        self.port = port
    }
}

/// A value under the resolver's mutex.
struct ResolverTable {
    typealias Waiter = @Sendable (ResolverAnswer) -> Void

    enum Joining {
        case answered(ResolverAnswer)
        case joined
        case mustAsk
        /// As many questions are open as the table may hold.
        case full
    }

    private let capacity: Int
    private var answers: [ResolverKey: (answer: ResolverAnswer, expires: UInt64)] = [:]
    private var waiting: [ResolverKey: [UInt64: Waiter]] = [:]
    private var last: UInt64 = 0

    init(capacity: Int) { self.capacity = max(1, capacity) }

    var count: Int { answers.count }
    var waiterCount: Int { waiting.values.reduce(0) { $0 + $1.count } }

    mutating func nextIdentifier() -> UInt64 {
        last += 1
        return last
    }

    func answer(_ key: ResolverKey, now: UInt64) -> ResolverAnswer? {
        guard let known = answers[key], known.expires > now else { return nil }
        return known.answer
    }

    mutating func join(_ key: ResolverKey, _ identifier: UInt64, _ waiter: @escaping Waiter, now: UInt64) -> Joining {
        if let answer = answer(key, now: now) { return .answered(answer) }
        if waiting[key] != nil {
            waiting[key]?[identifier] = waiter
            return .joined
        }
        guard waiting.count < capacity else { return .full }
        waiting[key] = [identifier: waiter]
        return .mustAsk
    }

    /// Removes one waiter; the resolution continues, and its answer is cached.
    mutating func leave(_ key: ResolverKey, _ identifier: UInt64) -> Waiter? {
        waiting[key]?.removeValue(forKey: identifier)
    }

    mutating func complete(_ key: ResolverKey, _ answer: ResolverAnswer, expires: UInt64) -> [Waiter] {
        if answers[key] == nil, answers.count >= capacity { makeRoom() }
        answers[key] = (answer, expires)
        return waiting.removeValue(forKey: key).map { Array($0.values) } ?? []
    }

    /// Drops the quarter that expires first, so that the walk over the table is rare.
    private mutating func makeRoom() {
        let oldestFirst = answers.sorted { $0.value.expires < $1.value.expires }
        for (key, _) in oldestFirst.prefix(max(1, answers.count / 4)) { answers[key] = nil }
    }
}
