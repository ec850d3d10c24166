// The command line.
@main struct DrydockCommand { static func main() {} }
