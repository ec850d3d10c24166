// A transcript: the steps of a session with the command line, and what each of them led to.

/// A text of steps and their outcomes, which is read for its steps and written anew with what they lead to.
///
/// A line that begins in column 0 is a step, or a remark behind `#`; a line that is indented belongs to the outcome of the step
/// above it. Remarks and empty lines stay as they are.
struct Transcript {
    /// What a session does next.
    enum Step: Equatable {
        /// `$ drydock WORDS`: runs a command to its end.
        case run([String])
        /// `& drydock WORDS`: runs a command that goes on, until a step ends it.
        case begin([String])
        /// `~ end COUNT`: ends that command by SIGINT as soon as it has printed so many lines.
        case end(Int)
        /// `> METHOD TARGET BODY`: sends a request to the daemon, and waits for its answer.
        case ask(method: String, target: String, body: String?)
        /// `~ park METHOD TARGET BODY`: sends a request whose call is parked, and waits until it is.
        case park(method: String, target: String, body: String?)
        /// `~ answers`: waits for the answers to the requests that were parked.
        case answers
        /// `~ origin NAME away` and `~ origin NAME back`.
        case origin(name: String, isAway: Bool)
        /// `~ replace FILE OLD NEW`: changes a file of the session's folder.
        case replace(file: String, old: String, new: String)
    }

    private enum Line: Equatable {
        case remark(String)
        case step(Step, text: String)
    }

    /// The text of a step that is none.
    struct Malformed: Error, CustomStringConvertible {
        let line: String
        var description: String { "'\(line)' is no step; see Transcript.Step" }
    }

    private let lines: [Line]

    /// - Throws: ``Malformed``
    init(_ text: String) throws {
        var lines: [Line] = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("    ") { continue }
            lines.append(
                line.isEmpty || line.hasPrefix("#")
                    ? .remark(String(line)) : .step(try Self.step(String(line)), text: String(line))
            )
        }
        self.lines = lines
    }

    /// The words of the commands, each without its options.
    var commands: [[String]] {
        lines.compactMap { line in
            switch line {
            case .step(.run(let words), _), .step(.begin(let words), _): words
            default: nil
            }
        }
    }

    /// The text with what the steps lead to now.
    /// - Parameter perform: does a step, and says what it led to, a line each.
    func text(performing perform: (Step) throws -> [String]) throws -> String {
        var text: [String] = []
        for line in lines {
            switch line {
            case .remark(let remark): text.append(remark)
            case .step(let step, let line):
                text.append(line)
                text += try perform(step).map { "    \($0)" }
            }
        }
        return text.joined(separator: "\n")
    }

    private static func step(_ line: String) throws -> Step {
        let words = words(line)
        func request(_ words: ArraySlice<String>) throws -> (String, String, String?) {
            guard let method = words.first, let target = words.dropFirst().first else { throw Malformed(line: line) }
            return (method, target, words.dropFirst(2).first)
        }
        switch (words.first, words.dropFirst().first) {
        case ("$", "drydock"): return .run(Array(words.dropFirst(2)))
        case ("&", "drydock"): return .begin(Array(words.dropFirst(2)))
        case (">", _):
            let (method, target, body) = try request(words.dropFirst())
            return .ask(method: method, target: target, body: body)
        case ("~", "park"):
            let (method, target, body) = try request(words.dropFirst(2))
            return .park(method: method, target: target, body: body)
        case ("~", "answers"): return .answers
        case ("~", "end"):
            guard words.count == 3, let count = Int(words[2]) else { throw Malformed(line: line) }
            return .end(count)
        case ("~", "origin"):
            guard words.count == 4, ["away", "back"].contains(words[3]) else { throw Malformed(line: line) }
            return .origin(name: words[2], isAway: words[3] == "away")
        case ("~", "replace"):
            guard words.count == 5 else { throw Malformed(line: line) }
            return .replace(file: words[2], old: words[3], new: words[4])
        default: throw Malformed(line: line)
        }
    }

    /// The words of a line, as a shell takes it apart that knows nothing but blanks and single quotes.
    private static func words(_ line: String) -> [String] {
        var (words, word, isQuoted) = ([String](), String?.none, false)
        for character in line {
            switch character {
            case "'":
                isQuoted.toggle()
                word = word ?? ""
            case " " where !isQuoted:
                if let word { words.append(word) }
                word = nil
            default: word = (word ?? "") + String(character)
            }
        }
        return words + (word.map { [$0] } ?? [])
    }
}
