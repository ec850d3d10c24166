// The reasons why an endpoint cannot make its own request of a client's.

/// A fault of the client's request, found before anything is sent.
package enum RequestFault: Error, Sendable, Equatable {
    /// A parameter of `to` has no value.
    case missing(parameter: String)
    /// A parameter of `to` is empty in its segment, or would leave it.
    case unfit(parameter: String)
    /// A parameter is given more than once, although it is a single value.
    case repeated(parameter: String)
    /// A parameter of `to` is a list or an object.
    case structured(parameter: String)
    /// A parameter for the content is not UTF-8.
    case notText(parameter: String)
    /// The target that `to` makes is longer than a target may be.
    case tooLong(limit: Int)
    /// The content is of a kind that is not read.
    case kind(String)
    /// The content is longer than the limit for content that is read as a whole, in bytes.
    case tooLarge(limit: Int)
    /// The content does not conform to its type.
    case malformed(String)
    /// The content cannot be sent in the format of the endpoint.
    case encoding(String)

    package var status: Int {
        switch self {
        case .missing, .unfit, .repeated, .structured, .notText, .tooLong, .malformed, .encoding: 400
        case .tooLarge: 413
        case .kind: 415
        }
    }

    package var title: String {
        switch self {
        case .missing: "Parameter missing"
        case .unfit, .repeated, .structured, .notText: "Parameter refused"
        case .tooLong: "Target too long"
        case .kind: "Content not understood"
        case .tooLarge: "Content too large"
        case .malformed: "Content malformed"
        case .encoding: "Content not encoded"
        }
    }

    /// The fault, with advice.
    package var detail: String {
        switch self {
        case .missing(let name):
            name.contains(".")
                ? "the parameter '\(name)' is missing; send it as a member of a JSON object or a form, or in the query"
                : "the parameter '\(name)' is missing; send it in the query, or as a member of a JSON object or a form"
        case .unfit(let name):
            "the parameter '\(name)' is empty, or is a dot segment, where a segment of a path is to be; send another value"
        case .repeated(let name): "the parameter '\(name)' is given more than once; send it once"
        case .structured(let name): "the parameter '\(name)' is a list, an object or null; send one value"
        case .notText(let name): "the parameter '\(name)' is not UTF-8; send it percent-encoded from UTF-8"
        case .tooLong(let limit): "the target would have more than \(limit) bytes; send shorter parameters"
        case .kind(let what): what
        case .tooLarge(let limit):
            "the content has more than \(limit) bytes, and this endpoint reads it as a whole;"
                + " send less, or raise body.max"
        case .malformed(let what): "the content is not what its Content-Type says: \(what)"
        case .encoding(let what): "the content cannot be sent as this endpoint says: \(what)"
        }
    }
}
