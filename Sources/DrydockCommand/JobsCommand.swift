// `drydock jobs`: the batches that the daemon knows, and what can be done with them.

import ArgumentParser

struct Jobs: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List, show, cancel, retry or remove batches.",
        subcommands: [List.self, Show.self, Cancel.self, Retry.self, Remove.self],
        defaultSubcommand: List.self
    )

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print one line for each job, the oldest first.")
        @OptionGroup var options: AdminOptions

        private struct Document: Decodable { let jobs: [JobDocument] }

        func run() throws {
            let answer = try options.client.request("GET", "/v1/jobs").successful()
            if options.json { return print(answer.text, terminator: "") }
            for job in try answer.decode(Document.self).jobs { print(job.line) }
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print one job, item by item.")
        @Argument(help: "The number of the job.") var id: String
        @OptionGroup var options: AdminOptions

        func run() throws {
            let answer = try JobFollower(client: options.client).whole(id)
            if options.json { return print(answer.text, terminator: "") }
            let job = try answer.decode(JobDocument.self)
            for item in job.items ?? [] { print(item.line) }
            print(job.line)
        }
    }

    struct Cancel: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "End a job; items that are done stay done.")
        @Argument(help: "The number of the job.") var id: String
        @OptionGroup var options: AdminOptions
        func run() throws { try options.act("POST", id, "/cancel") }
    }

    struct Retry: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Try the items again that have failed or were cancelled."
        )
        @Argument(help: "The number of the job.") var id: String
        @OptionGroup var options: AdminOptions
        func run() throws { try options.act("POST", id, "/retry") }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Forget a job that is not under way; the responses that it stored stay."
        )
        @Argument(help: "The number of the job.") var id: String
        @OptionGroup var options: AdminOptions
        func run() throws { try options.act("DELETE", id, "") }
    }
}

extension AdminOptions {
    fileprivate func act(_ method: String, _ id: String, _ what: String) throws {
        let client = try client
        let answer = try client.request(method, "/v1/jobs/\(AdminClient.escape(id))\(what)").successful()
        client.sayWhich()
        if json { return print(answer.text, terminator: "") }
        print(try answer.decode(JobDocument.self).line)
    }
}

extension JobDocument {
    /// `3  prefetch  running  12 of 30 items, 1.2 of 3.0 MiB  catalogue`.
    fileprivate var line: String {
        ([id, kind, state, sentence] + [name].compactMap { $0 }).joined(separator: "  ")
    }
}
