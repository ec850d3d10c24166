// A resource twice where there is reason to: as it is stored, while its origin is asked, and as the origin has it.

/// The values of a resource: the stored one, where it is no longer valid, and then the final one.
///
/// A stored response that cannot be read is left out. An error ends the sequence, also behind a stored value.
public struct LoadedValues<R: Resource>: AsyncSequence, Sendable {
    public typealias Element = Loaded<R.Model>
    public typealias Failure = ServiceError

    private let loader: ResourceLoader
    private let resource: R

    init(_ loader: ResourceLoader, _ resource: R) {
        self.loader = loader
        self.resource = resource
    }

    /// Asks anew.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(loader: loader, resource: resource) }

    /// The values of a resource that is asked for.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private enum Step {
            case first
            case final(TransportRequest)
            case over
        }

        private let loader: ResourceLoader
        private let resource: R
        private var step = Step.first

        fileprivate init(loader: ResourceLoader, resource: R) {
            self.loader = loader
            self.resource = resource
        }

        /// The next value; nil behind the final one, and behind an error.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(ServiceError) -> Loaded<R.Model>? {
            do throws(ServiceError) {
                switch step {
                case .first:
                    let request = try loader.request(for: resource)
                    step = .final(request)
                    if let stale = await loader.staleValue(of: resource, request) { return stale }
                    return try await final(request)
                case .final(let request): return try await final(request)
                case .over: return nil
                }
            } catch {
                step = .over
                throw error
            }
        }

        private mutating func final(_ request: TransportRequest) async throws(ServiceError) -> Loaded<R.Model> {
            let value = try loader.loaded(resource, request.head, try await loader.response(to: request))
            step = .over
            return value
        }
    }
}

extension ResourceLoader {
    /// The model of what is stored, although it is no longer valid; nil where there is none.
    func staleValue<R: Resource>(of resource: R, _ request: TransportRequest) async -> Loaded<R.Model>? {
        guard let response = await staleResponse(to: request) else { return nil }
        return try? loaded(resource, request.head, response, isStale: true)
    }
}
