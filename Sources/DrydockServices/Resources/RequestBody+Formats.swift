// Contents of requests made of values: JSON, forms, multipart forms, property lists.

public import Drydock
public import FoundationEssentials
import HTTPWire
import Trees

extension RequestBody {
    /// A value as JSON, `application/json`. Members are in the order in which the value encodes them, so that equal
    /// values have equal contents.
    /// - Parameters:
    ///   - value: ``Parameters``, a ``JSONValue`` or a type of the program's own.
    ///   - style: how its properties are named and written. Dates are ISO 8601, and `Data` is Base64, by default.
    /// - Throws: `ServiceError.encoding`.
    public static func json(
        _ value: some Encodable,
        style: ParameterStyle = ParameterStyle()
    ) throws(ServiceError) -> Self {
        .data(Data(JSONWriter.bytes(try style.pack(value))), contentType: "application/json")
    }

    /// A value as an encoder of Foundation writes it, `application/json`.
    /// - Parameters:
    ///   - value: what is encoded.
    ///   - encoder: without `sortedKeys` among its `outputFormatting` the order of members changes from one run to the
    ///     next, and with it what a POST is stored under.
    /// - Throws: `ServiceError.encoding`.
    public static func json(_ value: some Encodable, encoder: JSONEncoder) throws(ServiceError) -> Self {
        do {
            return .data(try encoder.encode(value), contentType: "application/json")
        } catch {
            throw .encoding(error)
        }
    }

    /// Parameters as a form, `application/x-www-form-urlencoded`.
    /// - Parameters:
    ///   - parameters: in the order in which they are sent.
    ///   - encoding: how they are written; as forms of web pages by default.
    public static func form(_ parameters: Parameters, encoding: FormEncoding = .form) -> Self {
        .data(Data(encoding.text(parameters).utf8), contentType: "application/x-www-form-urlencoded")
    }

    /// A value as a property list in XML, `application/x-plist`. `Date` and `Data` have types of their own there.
    /// - Parameters:
    ///   - value: ``Parameters``, a ``JSONValue`` or a type of the program's own.
    ///   - style: how its properties are named and written.
    /// - Throws: `ServiceError.encoding`; for a null, too.
    public static func propertyList(
        _ value: some Encodable,
        style: ParameterStyle = ParameterStyle()
    ) throws(ServiceError) -> Self {
        let tree = try style.pack(value)
        if let name = tree.nameOfNull("the root") { throw .encoding(ParameterFault.null(name)) }
        do throws(TreeError) {
            return .data(Data(try PropertyListWriter.bytes(tree)), contentType: "application/x-plist")
        } catch {
            throw .encoding(ParameterFault.text(error.description))
        }
    }
}

extension MultipartForm {
    /// A form with a field for each parameter, and for each element of a list.
    /// - Parameters:
    ///   - parameters: in the order in which they are sent; null is a field without content.
    ///   - encoding: how names of fields are made, and truth values written; nothing is percent-encoded.
    public init(_ parameters: Parameters, encoding: FormEncoding = .form) {
        self.init()
        for item in encoding.items(parameters) { append(item.value ?? "", name: item.name) }
    }
}

extension ContentTree {
    /// Where the first null is; nil where there is none.
    fileprivate func nameOfNull(_ name: String) -> String? {
        switch self {
        case .null: return name
        case .array(let values):
            for value in values { if let found = value.nameOfNull(name) { return found } }
        case .object(let members):
            for member in members { if let found = member.value.nameOfNull(member.name) { return found } }
        default: break
        }
        return nil
    }
}

extension Parameters: Encodable {
    /// Encodes the parameters as an object.
    public func encode(to encoder: any Encoder) throws { try JSONValue(try object).encode(to: encoder) }
}
