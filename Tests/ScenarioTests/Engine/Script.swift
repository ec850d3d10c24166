// What a .scenario file says, as values: scenarios, their steps, what the origin answers and what must arrive.

import Testing

/// A line of a script.
struct ScriptPosition: Sendable, Hashable, CustomStringConvertible {
    /// The file's name, without its folder.
    var file: String
    /// From 1.
    var line: Int

    var description: String { "\(file):\(line)" }
}

/// What is wrong with a script, and where.
struct ScriptError: Error, Equatable, CustomStringConvertible {
    var position: ScriptPosition
    var message: String

    var description: String { "\(position): \(message)" }
}

/// One scenario: steps on a path of its own.
struct Scenario: Sendable, CustomTestStringConvertible {
    var title: String
    var position: ScriptPosition
    /// The words of `only` lines; empty for every way.
    var only: Set<String> = []
    /// A daemon that no other scenario sees, for what it learns about an origin as a whole.
    var hasOwnDaemon = false
    var steps: [ScriptStep] = []

    var testDescription: String { "\(position.file): \(title)" }

    func runs(in way: Way) -> Bool {
        let modes = only.intersection(Way.Mode.allCases.map(\.rawValue))
        let checks = only.intersection(Way.Check.allCases.map(\.rawValue))
        return (modes.isEmpty || modes.contains(way.mode.rawValue))
            && (checks.isEmpty || checks.contains(way.check.rawValue))
    }

    var saysWhatIsAsked: Bool {
        steps.contains { if case .asked = $0.action { true } else { false } }
    }
}

struct ScriptStep: Sendable {
    var position: ScriptPosition
    var action: ScriptAction
}

enum ScriptAction: Sendable {
    case origin(OriginScript)
    case ask(RequestScript, [Expectation])
    case start(String, RequestScript)
    case finish(String, [Expectation])
    case release(String)
    case settle
    /// All that the origin has been asked since the last time; empty for nothing.
    case asked([AskedScript])
    /// In seconds.
    case clock(Int64)
    case offline(Bool)
    case explain(RequestScript, [ScriptLine])
}

/// One line of a script without its indentation.
struct ScriptLine: Sendable {
    var position: ScriptPosition
    /// How many spaces stood before it.
    var indent: Int
    var text: String
}

struct ScriptField: Sendable, Equatable {
    var name: String
    /// With templates such as `{now}` still in it.
    var value: String
}

enum ScriptBody: Sendable, Equatable {
    case bytes([UInt8])
    /// So many bytes of `Pattern`.
    case pattern(Int)
}

/// What the origin answers for a path from now on.
struct OriginScript: Sendable {
    struct Interim: Sendable {
        var status: Int
        var fields: [ScriptField] = []
    }

    /// nil for GET and HEAD.
    var method: String?
    var path: String
    var status = 200
    var reason = "Scripted"
    var fields: [ScriptField] = []
    /// Fields that it would send of its own accord, and must not.
    var omitted: Set<String> = []
    var body = ScriptBody.bytes([])
    var isUnconditional = false
    var honoursRanges = false
    var isChunked = false
    var closes = false
    var hasNoLength = false
    /// Closes after so many bytes of the body.
    var cut: Int?
    var drops = false
    var holds = false
    /// Waits for a release after so many bytes of the body.
    var holdsBody: Int?
    var interims: [Interim] = []
    var trailers: [ScriptField] = []
    /// Sent as it is in place of everything else.
    var raw: [UInt8]?
}

/// A request of the client.
struct RequestScript: Sendable {
    var method: String
    var path: String
    var version = "HTTP/1.1"
    var fields: [ScriptField] = []
    /// Fields that the client would send of its own accord, and must not.
    var omitted: Set<String> = []
    var body: ScriptBody?
    var isChunked = false
    var trailers: [ScriptField] = []
}

/// What a field's joined value must be.
enum FieldTest: Sendable, Equatable {
    case equals(String)
    case contains(String)
    case lacks(String)
    case absent
}

/// One line of what must arrive at the client.
struct Expectation: Sendable {
    enum What: Sendable, Equatable {
        case status(Int)
        case reason(String)
        case field(String, FieldTest)
        case body([UInt8])
        /// Somewhere in the body.
        case bodyPart([UInt8])
        case pattern(Range<Int>)
        case interim(Int)
        /// Of the last `interim` before it.
        case interimField(String, FieldTest)
        case cut
        case trailer(String, FieldTest)
    }

    var position: ScriptPosition
    var what: What
}

/// One request that the origin must have received.
struct AskedScript: Sendable {
    struct Field: Sendable {
        var position: ScriptPosition
        var name: String
        var test: FieldTest
    }

    var position: ScriptPosition
    /// A method, or CHECK or REFETCH.
    var method: String
    var path: String
    var fields: [Field] = []
    var body: ScriptBody?
}
