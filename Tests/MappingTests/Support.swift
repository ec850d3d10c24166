// Rules in few words, and documents as text.

@testable import Mapping

/// A rule for a value.
func rule(
    _ path: String,
    _ shape: MappingRule.Shape = .same,
    missing: MissingValue = .null,
    standIn: String? = nil
) throws -> MappingRule {
    MappingRule(from: try MappingPath(path), shape, missing: missing, standIn: standIn.map { Array($0.utf8) })
}

func object(_ members: KeyValuePairs<String, MappingRule>) -> MappingRule.Shape {
    .object(members.map { MappingRule.Member(name: $0.key, rule: $0.value) })
}

/// The mapped document as text.
func mapped(_ text: String, _ rule: MappingRule, limit: Int = 1 << 20) throws -> String {
    let bytes = Array(text.utf8)
    return try bytes.withUnsafeBytes { bytes in
        String(decoding: try MappingPlan(rule).map(bytes, limit: limit), as: UTF8.self)
    }
}

/// The same, from a document that comes in pieces that end at these offsets.
func streamed(
    _ text: String,
    _ rule: MappingRule,
    at cuts: [Int] = [],
    limit: Int = 1 << 20
) throws -> String {
    let bytes = Array(text.utf8)
    let stream = MappingStream(MappingPlan(rule), limit: limit)
    var output: [UInt8] = []
    var start = 0
    for cut in cuts + [bytes.count] {
        try bytes[start..<cut].withUnsafeBytes { try stream.push($0) }
        output += stream.takeOutput()
        start = cut
    }
    try stream.finish()
    return String(decoding: output + stream.takeOutput(), as: UTF8.self)
}

func failure(_ body: () throws -> String) -> MappingFailure? {
    do {
        _ = try body()
        return nil
    } catch {
        return error as? MappingFailure
    }
}
