// From within which of the program's closures a request is made: such a request must not wait for that closure.

/// The closures that the program is asked by at this moment, and from within which a request is made: those about
/// credentials, and the one about TLS.
///
/// It is a task-local value: who makes a request in a detached task is outside of it.
struct AskingScope: Sendable, Hashable {
    private struct Question: Sendable, Hashable {
        /// Who asks: no other object is there at its address while the closure runs.
        let asker: ObjectIdentifier
        let origin: String
    }

    /// The scope of the task that runs at this moment.
    @TaskLocal static var current = AskingScope()

    private var questions: [Question] = []

    var isEmpty: Bool { questions.isEmpty }

    /// The origins about which an asker's closures think here, the outermost first.
    func origins(of asker: AnyObject) -> [String] {
        questions.filter { $0.asker == ObjectIdentifier(asker) }.map(\.origin)
    }

    /// Whether a request is made from within an asker's closure about this origin: what it brings there is its result,
    /// and nobody is asked about that.
    func isWithin(_ asker: AnyObject, _ origin: String) -> Bool {
        questions.contains(Question(asker: ObjectIdentifier(asker), origin: origin))
    }

    /// Within a further closure.
    func adding(_ asker: AnyObject, _ origin: String) -> AskingScope {
        var scope = self
        scope.questions.append(Question(asker: ObjectIdentifier(asker), origin: origin))
        return scope
    }

    /// Behind the key of a request: it waits for no download from outside of the closures, which may wait for them.
    var line: String? {
        isEmpty ? nil : "asked within \(questions.map(\.origin).joined(separator: " "))"
    }
}

/// Which questions of one asker wait for others of it: from within the closure about one origin the closure about another is
/// waited for. A circle of them would never end.
struct AwaitedQuestions: Sendable {
    /// By the origin of the question that waits.
    private var awaited: [String: [String]] = [:]

    /// Whether the question about an origin waits for one of others, or is one of them.
    func waits(_ origin: String, for others: [String]) -> Bool {
        if others.isEmpty { return false }
        var (seen, next): (Set<String>, [String]) = ([], [origin])
        while let origin = next.popLast() {
            if others.contains(origin) { return true }
            if seen.insert(origin).inserted { next += awaited[origin] ?? [] }
        }
        return false
    }

    /// - Parameter outer: the origins within whose closures it is waited for.
    mutating func note(_ outer: [String], awaiting origin: String) {
        for name in outer { awaited[name, default: []].append(origin) }
    }

    mutating func forget(_ outer: [String], awaiting origin: String) {
        for name in outer {
            guard let index = awaited[name]?.firstIndex(of: origin) else { continue }
            awaited[name]?.remove(at: index)
            if awaited[name]?.isEmpty ?? false { awaited[name] = nil }
        }
    }

    /// It waits for nobody any more, whatever its closure has left behind.
    mutating func answered(_ origin: String) { awaited[origin] = nil }
}
