// What a stub of WireMock answers: status, fields, body, and what happens on the way.

import Content
import Glibc
import HTTPWire

/// The response of a stub.
struct WireMockResponse {
    private(set) var answer = ImportedAnswer()
    /// As a rule's `latency` has it.
    private(set) var latency: String?
    /// As `faults` has them, each with a name of what it was in the source.
    private(set) var faults: [ContentTree] = []
    private(set) var faultNames: [String] = []

    /// - Throws: where an answer would be something else.
    init(
        _ response: ContentTree,
        _ place: ImportPlace,
        _ name: String,
        _ bodyFile: (String) -> [UInt8]?,
        _ draft: inout ImportDraft
    ) throws(Unkept) {
        var bytes: [UInt8] = []
        var isJSON = false
        var lines: [(name: String, value: String)] = []
        for member in response.members ?? [] {
            let here = place.within(member.name)
            let value = member.value
            switch member.name {
            case "status":
                guard let status = value.whole, 200...599 ~= status else {
                    throw Unkept(here, "a rule answers with a status from 200 to 599")
                }
                answer.status = status
            case "statusMessage":
                draft.change(here, "the reason phrase is that of the status: HTTP gives it no meaning")
            case "headers":
                for field in value.members ?? [] {
                    for text in field.value.elements ?? [field.value] { lines.append((field.name, text.scalar ?? "")) }
                }
            case "body": bytes = Array((value.scalar ?? "").utf8)
            case "jsonBody":
                bytes = JSONWriter.bytes(value)
                isJSON = true
            case "base64Body":
                guard let decoded = Base64.decode(value.text ?? "") else { throw Unkept(here, "this is no base64") }
                bytes = decoded
            case "bodyFileName":
                guard let content = bodyFile(value.text ?? "") else {
                    throw Unkept(here, "there is no file '\(value.text ?? "")' in the folder __files")
                }
                bytes = content
            case "fixedDelayMilliseconds":
                if let time = value.whole, time > 0 { latency = "\(time)ms" }
            case "delayDistribution": try delay(value, here)
            case "chunkedDribbleDelay":
                guard let count = value["numberOfChunks"]?.whole, let time = value["totalDuration"]?.whole,
                    1...1_000_000 ~= count, time >= 0
                else { throw Unkept(here, "it has no number of chunks, or no time") }
                add(
                    .object(of: [
                        "dribble": .object(of: ["chunks": .whole(count), "over": .string("\(time)ms")])
                    ]),
                    member.name
                )
            case "fault": try fault(value, here)
            case "transformers":
                if value.elements?.isEmpty == false {
                    draft.change(
                        here,
                        "the body is sent as it stands: templates of WireMock are written in another way than those of Drydock"
                    )
                }
            case "transformerParameters", "fromConfiguredStub": break
            case "proxyBaseUrl":
                throw Unkept(here, "a rule answers by itself; demo.unmatched: pass lets requests go on to base_url")
            default: draft.change(here, "Drydock has nothing like it: it is not kept")
            }
        }
        let type = lines.first { $0.name.lowercased() == "content-type" }?.value ?? (isJSON ? "application/json" : nil)
        answer.headers = ImportedFields.members(lines, at: place.within("headers"), isWritten: true, &draft)
        guard bytes.count <= ImportDraft.largestBody else { throw Unkept(place, "the body has more than 64 MiB") }
        if ImportedAnswer.mayHaveContent(answer.status) {
            answer.file = draft.file(bytes, type: type, near: name)
        } else if !bytes.isEmpty {
            draft.change(place, "an answer with status \(answer.status) has no body (RFC 9110)")
        }
    }

    private mutating func add(_ fault: ContentTree, _ name: String) {
        faults.append(fault)
        faultNames.append("'\(name)'")
    }

    private mutating func delay(_ value: ContentTree, _ here: ImportPlace) throws(Unkept) {
        switch value["type"]?.text {
        case "uniform":
            guard let lower = value["lower"]?.whole, let upper = value["upper"]?.whole, 0 <= lower, lower <= upper
            else {
                throw Unkept(here, "its bounds are no whole numbers of milliseconds")
            }
            latency = "\(lower)ms..\(upper)ms"
        case "fixed":
            guard let time = value["milliseconds"]?.whole, time >= 0 else { throw Unkept(here, "it has no time") }
            latency = "\(time)ms"
        case "lognormal":
            guard let median = value["median"]?.scalar.flatMap(Double.init), median >= 1, median < 1e9,
                let sigma = value["sigma"]?.scalar.flatMap(Double.init), sigma >= 0, sigma < 5
            else { throw Unkept(here, "its median or its sigma is no number that a latency can have") }
            // The 99th percentile of the standard normal distribution.
            let high = median * exp(2.326348 * sigma)
            let most = value["maxValue"]?.whole
            let lognormal = ContentTree.object(of: [
                "median": .string("\(Int(median.rounded()))ms"),
                "p99": .string("\(Int(max(high, median).rounded()))ms"),
            ])
            add(
                .object(of: [
                    "latency": .object(of: ["lognormal": lognormal, "max": most.map { .string("\($0)ms") }])
                ]),
                "delayDistribution"
            )
        default: throw Unkept(here, "this distribution is unknown; uniform, lognormal and fixed can be kept")
        }
    }

    private mutating func fault(_ value: ContentTree, _ here: ImportPlace) throws(Unkept) {
        let fault: ContentTree
        switch value.text {
        case "CONNECTION_RESET_BY_PEER": fault = .string("reset")
        case "EMPTY_RESPONSE": fault = .string("empty")
        case "RANDOM_DATA_THEN_CLOSE": fault = .string("garbage")
        case "MALFORMED_RESPONSE_CHUNK":
            fault = .object(of: ["garbage": .object(of: ["after": .string("status_line")])])
        default: throw Unkept(here, "this fault is unknown")
        }
        add(.object(of: ["fault": fault]), "fault")
    }
}
