// The values that a group has taken from answers: how they are filled into requests, and how they are found in answers.

package import DownloadCore
package import HTTPWire
import Policies
import Trees

/// The values that the calls of one run have taken, by name. They may be secret, so no message shows one.
package struct GroupValues: Sendable, Equatable {
    private var taken: [String: String] = [:]

    package init() {}

    /// The value with a name; nil if none was taken.
    package func value(_ name: String) -> String? { taken[name] }

    // MARK: - Requests

    /// True if the condition of a call is met, so that it is made.
    package func allow(_ call: GroupCall) -> Bool {
        guard let condition = call.condition else { return true }
        return (taken[condition.name] == condition.text || taken[condition.name] == nil && condition.text.isEmpty)
            == condition.wantsEqual
    }

    /// The request of a call with its values.
    /// - Throws: a refusal if a value is missing, or is not allowed where it is used.
    package func request(_ call: GroupCall) throws(BatchRefusal) -> GroupRequest {
        var target = try call.path.filled { name throws(BatchRefusal) in
            let value = try needed(name)
            // An empty value would make another path.
            guard !value.isEmpty else { throw BatchRefusal("the value '\(name)' is empty, which no path may contain") }
            return PlaceholderText.percentEncoded(value)
        }
        // A dot segment would make another path, too, also one that a value completes or that a server decodes.
        guard !DotSegments.mayOccur(in: target) else {
            throw BatchRefusal("the path of the call has a dot segment with its values, which no path may contain")
        }
        for item in call.query {
            let value = try item.value.filled { name throws(BatchRefusal) in try needed(name) }
            target += target.contains("?") ? "&" : "?"
            target += "\(PlaceholderText.percentEncoded(item.name))=\(PlaceholderText.percentEncoded(value))"
        }
        var request = GroupRequest(service: call.service, method: call.method, target: target)
        for field in call.fields {
            let value = try field.value.filled { name throws(BatchRefusal) in try needed(name) }
            guard value.unicodeScalars.allSatisfy({ $0 == "\t" || ($0.value >= 32 && $0.value != 127) }) else {
                throw BatchRefusal("a value for the field '\(field.name)' has a line end or a control character")
            }
            request.fields.append(.init(field.name, value))
        }
        guard let body = call.body else { return request }
        let type = request.fields.first { $0.name.lowercased() == "content-type" }?.value
        let form = BodyForm(body, type: type)
        request.body = Array(try body.filled { name throws(BatchRefusal) in form.encoded(try needed(name)) }.utf8)
        if type == nil { request.fields.append(.init("Content-Type", form.contentType)) }
        return request
    }

    private func needed(_ name: String) throws(BatchRefusal) -> String {
        guard let value = taken[name] else {
            throw BatchRefusal("there is no value '\(name)': the call that takes it was skipped or has failed")
        }
        return value
    }

    /// The text without the values, which may be in it as they are or percent-encoded.
    package func hidden(in text: String) -> String {
        // The longest values are replaced first: one value may be a part of another.
        let texts = taken.flatMap { name, value in
            Set([value, PlaceholderText.percentEncoded(value)]).map { (text: $0, name: "$(\(name))") }
        }
        return texts.filter { $0.text.utf8.count >= 4 }.sorted { $0.text.utf8.count > $1.text.utf8.count }
            .reduce(text) { $0.replacing($1.text, with: $1.name) }
    }

    // MARK: - Answers

    /// Takes the values of a call from its answer, either all or none.
    /// - Parameter body: the body as it was received; it is read only if the call takes a value from it.
    /// - Throws: a refusal that names the missing value.
    package mutating func take(
        _ call: GroupCall,
        status: Int,
        _ fields: Fields,
        body: [UInt8]
    ) throws(BatchRefusal) {
        var found: [String: String] = [:]
        for (name, source) in call.take.sorted(by: { $0.key < $1.key }) {
            switch source {
            case .status: found[name] = "\(status)"
            case .field(let field):
                guard let value = fields.first(field) else {
                    throw BatchRefusal("the answer has no field '\(field)' for the value '\(name)'")
                }
                found[name] = value
            case .body(let keys):
                do throws(JSONLookupError) {
                    found[name] = try JSONLookup.text(at: keys, in: body)
                } catch {
                    throw BatchRefusal("the answer's body has nothing for the value '\(name)': \(error.reason)")
                }
            }
        }
        taken.merge(found) { $1 }
    }

    /// Adds the values of another run of calls; a newer value replaces one with the same name.
    package mutating func merge(_ newer: GroupValues) { taken.merge(newer.taken) { $1 } }

    // MARK: - Encodings

    /// The encoding of a value in a body, which keeps it a single value.
    private enum BodyForm {
        case json, form, plain

        init(_ body: PlaceholderText, type: String?) {
            let type = type?.prefix { $0 != ";" }.lowercased()
            if type == "application/x-www-form-urlencoded" {
                self = .form
            } else if let type {
                self = type.hasSuffix("json") || type.hasSuffix("json ") ? .json : .plain
            } else {
                let first = body.shown.first { !$0.isWhitespace }
                self = first == "{" || first == "[" ? .json : .plain
            }
        }

        var contentType: String {
            switch self {
            case .json: "application/json"
            case .form: "application/x-www-form-urlencoded"
            case .plain: "text/plain; charset=utf-8"
            }
        }

        func encoded(_ value: String) -> String {
            switch self {
            case .json: JSONWriter.escaped(value)
            case .form: PlaceholderText.percentEncoded(value)
            case .plain: value
            }
        }
    }
}
