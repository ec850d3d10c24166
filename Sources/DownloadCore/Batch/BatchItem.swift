// One item of a batch: the request to download, and its options.

package import HTTPWire

/// One resource of a batch, as a client would ask for it.
package struct BatchItem: Sendable, Equatable, Codable {
    package struct Field: Sendable, Equatable, Hashable, Codable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package var url: String
    /// As it is sent; `GET` by default.
    package var method: String
    /// Further request fields, in order.
    package var fields: [Field]
    /// The content of the request; nil where it has none.
    package var body: [UInt8]?
    /// Fetches from the origin even where a stored response is fresh. The stored response is removed only when its
    /// replacement is complete. False by default.
    package var force: Bool
    /// A seed may answer; true by default.
    package var seed: Bool
    /// Stores the response; true by default. If false, a response that is stored already stays as it is.
    package var store: Bool
    /// Where the body is written, too: a path as the ``BatchFiles`` want it; nil: nowhere.
    package var file: String?
    /// Tells it from items of the same request whose wishes differ in what does not stand here; nil: nothing does.
    package var kind: Int?

    package init(
        url: String,
        method: String = "GET",
        fields: [Field] = [],
        body: [UInt8]? = nil,
        force: Bool = false,
        seed: Bool = true,
        store: Bool = true,
        file: String? = nil,
        kind: Int? = nil
    ) {
        self.url = url
        self.method = method
        self.fields = fields
        self.body = body
        self.force = force
        self.seed = seed
        self.store = store
        self.file = file
        self.kind = kind
    }

    /// The fields of the request, with the Cache-Control directives that the options stand for
    /// (RFC 9111 section 5.2.1).
    /// - Throws: ``BatchRefusal`` where a name or a value is none.
    package func requestFields() throws(BatchRefusal) -> Fields {
        var result = Fields()
        for field in fields {
            // A line end would begin a field of its own, or end the head.
            let isOneLine = field.value.utf8.allSatisfy { $0 != 10 && $0 != 13 && $0 != 0 }
            guard isOneLine, result.append(field.name, field.value) else {
                throw BatchRefusal("'\(field.name): \(field.value)' is not a request field; correct its name or value")
            }
        }
        if force { result.appendMember(.cacheControl, "no-cache") }
        if !store { result.appendMember(.cacheControl, "no-store") }
        return result
    }
}

extension BatchItem {
    /// A GET as clients ask, so that what is stored of it serves them: a variant that no client asks for answers nobody.
    /// Fields that the item brings itself stay.
    /// - Parameter codings: those that everybody reads are asked for; false where a program reads the bytes.
    package func asClientsAsk(codings: Bool) -> BatchItem {
        guard method == "GET" else { return self }
        var item = self
        let names = Set(fields.map { $0.name.lowercased() })
        if !names.contains("accept") { item.fields.append(Field("Accept", "*/*")) }
        // What is written to a file must not be coded.
        if codings, file == nil, !names.contains("accept-encoding") {
            item.fields.append(Field("Accept-Encoding", "gzip, br"))
        }
        return item
    }
}

/// Why an item cannot be asked for, and what to do.
package struct BatchRefusal: Error, Sendable, Equatable, CustomStringConvertible {
    package var description: String
    /// The item is not wanted: it is done, and has not failed.
    package var isSkip: Bool

    package init(_ description: String, isSkip: Bool = false) {
        self.description = description
        self.isSkip = isSkip
    }
}
