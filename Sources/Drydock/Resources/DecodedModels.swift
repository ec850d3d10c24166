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
/// A model is found by the request and ``Resource/modelKey``, and is used where the response has the same strong entity
/// tag and length, or the very same bytes. Any thread may use it, and several loaders may share it.
public final class DecodedModels: Sendable {
    private struct Key: Hashable, Sendable {
        let resource: any Hashable & Sendable
        let request: HTTPRequest

        static func == (left: Self, right: Self) -> Bool {
            AnyHashable(left.resource) == AnyHashable(right.resource) && left.request == right.request
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(AnyHashable(resource))
            hasher.combine(request)
        }
    }

    /// What says that a response has not changed.
    private enum Mark: Hashable, Sendable {
        /// Unique to the bytes (RFC 9110 section 8.8.1).
        case entityTag(String, length: Int)
        case bytes(Data)

        init(_ result: DownloadResult) {
            let tag = result.response.headerFields[.eTag] ?? ""
            self = tag.hasPrefix("\"") ? .entityTag(tag, length: result.data.count) : .bytes(result.data)
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
        _ result: DownloadResult,
        make: () throws -> Model
    ) rethrows -> Model {
        let key = Key(resource: key, request: request)
        let mark = Mark(result)
        if let entry = cache[key], entry.mark == mark, let model = entry.model as? Model { return model }
        let model = try make()
        cache.insert(Entry(mark: mark, model: model), for: key, cost: max(1, result.data.count))
        return model
    }
}
