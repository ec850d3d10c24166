// Models that were decoded already, for responses that have not changed since then.

import FoundationEssentials
import HTTPTypes
import Synchronization

/// Keeps models for as long as there is room for them, so that a stored response that has not changed is not decoded
/// again.
///
/// ```swift
/// let loader = ResourceLoader(transport: manager, base: base, models: DecodedModels(costLimit: 16 << 20))
/// ```
///
/// A model is found by the request and ``Resource/modelKey``, and is used where the response has the very same bytes and
/// media type. A model that was made of what a ``DownloadManager`` has asked with credentials or cookies is for those
/// alone: another user, and another manager, gets one of its own, also of the same bytes. Of the responses of a program's
/// own transport only fields of the request say whose they are. Any thread may use it, and several loaders may share it.
public final class DecodedModels: Sendable {
    private struct Key: Hashable, Sendable {
        let resource: any Hashable & Sendable
        let request: HTTPRequest
        /// Whose credentials and cookies the response was asked with; nil: nobody's.
        let holder: String?

        static func == (left: Self, right: Self) -> Bool {
            left.holder == right.holder && left.request == right.request
                && AnyHashable(left.resource) == AnyHashable(right.resource)
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(AnyHashable(resource))
            hasher.combine(request)
            hasher.combine(holder)
        }
    }

    /// What says that a response has not changed. An entity tag does not: an origin may give the same one to users
    /// who get different bytes.
    private struct Mark: Equatable, Sendable {
        let bytes: Data
        /// It may say how bytes become a text.
        let type: String?

        init(_ result: DownloadResult) {
            bytes = result.data
            type = result.response.headerFields[.contentType]
        }
    }

    private struct Entry: Sendable {
        let mark: Mark
        let model: any Sendable
    }

    private let cache: MemoryCache<Key, Entry>

    /// - Parameter costLimit: bytes that the bodies of all models may have together.
    public init(costLimit: Int) { cache = MemoryCache(costLimit: costLimit) }

    /// Models that are held.
    public var count: Int { cache.count }

    /// Lets go of all.
    public func removeAll() { cache.removeAll() }

    /// The model of a response: the one that is held, or a new one.
    func model<Model: Sendable>(
        of key: any Hashable & Sendable,
        _ request: HTTPRequest,
        _ response: WholeResponse,
        make: () throws -> Model
    ) rethrows -> Model {
        let key = Key(resource: key, request: request, holder: response.holder)
        let mark = Mark(response.result)
        if let entry = cache[key], entry.mark == mark, let model = entry.model as? Model { return model }
        let model = try make()
        cache.insert(Entry(mark: mark, model: model), for: key, cost: max(1, mark.bytes.count))
        return model
    }
}
