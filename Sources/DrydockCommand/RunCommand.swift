// `drydock run`: has the daemon make the calls of a group, and reports the outcome of each.

import ArgumentParser
import DrydockDaemon
import ProxyServer

struct Run: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Make the calls of a group.",
        discussion: """
            The group is one of 'groups' in the configuration. With --detach, or after Ctrl-C, the daemon continues, \
            'drydock jobs' shows the progress, and 'drydock jobs cancel ID' ends the run.
            """
    )
    @Argument(help: "The name of the group.") var group: String
    @Flag(help: "Do not wait until the run has ended.")
    var detach = false
    @OptionGroup var options: AdminOptions

    func run() throws {
        let client = try options.client
        let follower = JobFollower(client: client)
        let job = try client.request("POST", .group, id: group).successful().decode(AdminJob.self)
        client.sayWhich()
        if detach {
            if options.json { return print(try follower.whole(job.id).text, terminator: "") }
            return print("job \(job.id): 'drydock jobs show \(job.id)' shows its progress")
        }
        guard let ended = try follower.follow(job.id) else {
            printError(
                "job \(job.id) continues: 'drydock jobs show \(job.id)' shows its progress, 'drydock jobs cancel \(job.id)' ends it"
            )
            throw ExitCode(130)
        }
        let answer = try follower.whole(job.id)
        if options.json {
            print(answer.text, terminator: "")
        } else {
            for item in try answer.decode(AdminJob.self).items ?? [] { print(item.callLine) }
            print("job \(ended.id) \(ended.state), \(ended.progress.calls)")
        }
        if !ended.isGood { throw ExitCode(1) }
    }
}
