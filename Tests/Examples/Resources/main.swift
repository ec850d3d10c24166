// Resources: a list of users as JSON, from a URL to Swift values, through the cache.

import Drydock
import DrydockServices
import Foundation

struct User: Decodable, Sendable {
    let name: String
    let city: String
}

let loader = ServiceManager()
for location in CommandLine.arguments.dropFirst() {
    do {
        let users = try await loader.load([User].self, from: Endpoint(location))
        for user in users.model { print("\(user.name) lives in \(user.city) (\(users.outcome))") }
    } catch .mapping(_, let result) {
        print("\(location) is no list of users: \(result.data.count) bytes")
    } catch {
        print("\(location) brought nothing: \(error)")
    }
}
