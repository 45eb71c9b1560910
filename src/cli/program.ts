/** The commands, their flags and their help: a table of contents. What each does stands in a file of its own. */
import { Command, InvalidArgumentError, Option } from 'commander'
import { SCOPES } from '../accounts/scopes.ts'
import { configReference } from '../config/reference.ts'
import { VERSION } from '../domain/version.ts'
import { consoleLink, createAccount, listAccounts } from './accounts.ts'
import { createAgent, deleteAgent, getAgent, listAgents, updateAgent } from './agents.ts'
import { listRemoved } from './audit.ts'
import { checkConfig } from './check-config.ts'
import type { CliContext } from './context.ts'
import { addCredential, listCredentials, removeCredential } from './credentials.ts'
import { createKey, listKeys, revokeKey } from './keys.ts'
import { run } from './run.ts'
import { serve } from './serve.ts'
import { getSettings, setSetting } from './settings.ts'
import { addSkills, checkSkills, listSkills, removeSkill } from './skills.ts'
import { showWebhookSecret } from './webhooks.ts'

/** `done` is given the exit code of a command that ends otherwise than by success or by throwing Exit. */
export function createProgram(context: CliContext, done: (code: number) => void): Command {
  const program = new Command('errand')
    .description(
      'Self-hosted managed agents: an instruction in, an isolated Linux sandbox, a streamed trace and an answer out.',
    )
    .version(VERSION, '-V, --version')
    .configureOutput({ writeOut: context.out.write, writeErr: context.err.write })
    .exitOverride()
    .showHelpAfterError('(--help shows how)')
  addServe(program, context, done)
  addRun(program, context, done)
  addKeys(program.command('keys').description('API keys, on the data directory of this machine'), context)
  addAgents(program.command('agents').description('stored agents'), context)
  addSkillCommands(
    program.command('skills').description('skills: instructions, scripts and references for runs'),
    context,
  )
  addCredentialCommands(program.command('credentials').description('secrets that runs sign in with, by id'), context)
  program
    .command('webhooks')
    .description('webhooks, on the data directory of this machine')
    .command('secret')
    .description('print what the webhooks of a project are signed with')
    .option('--project <name>', 'which project', 'default')
    .addOption(configOption())
    .action((options) => showWebhookSecret(context, options))
  program
    .command('audit')
    .description('what is on record, on the data directory of this machine')
    .command('removed')
    .description(
      'list the interactions that were removed last: when, by which key or by their retention, and what with them',
    )
    .option('--limit <count>', 'so many', positive, 50)
    .option('--json', 'as JSON', false)
    .addOption(configOption())
    .action((options) => listRemoved(context, options))
  addAccounts(program.command('accounts').description('accounts, on the database of this server'), context)
  addConsole(program.command('console').description('who signs in to the web console'), context)
  addSettings(program.command('settings').description("the account's experimental settings"), context)
  addRest(program, context, done)
  refuseHelpOfUnknown(program)
  return program
}

/** Commander answers `nonsense --help` with the help of the group, as a success. Here it is an unknown command. */
function refuseHelpOfUnknown(group: Command): void {
  if (group.commands.length === 0) return
  group.addHelpText('before', ({ command, error }) => {
    const [name] = command.args
    if (command === group && !error && name !== undefined && name !== 'help' && !name.startsWith('-')) {
      group.error(`error: unknown command '${name}'`, { code: 'commander.unknownCommand' })
    }
    return ''
  })
  group.commands.forEach(refuseHelpOfUnknown)
}

type Done = (code: number) => void

function addServe(program: Command, context: CliContext, done: Done): void {
  program
    .command('serve')
    .description('serve the API until SIGTERM or Ctrl-C')
    .addOption(configOption())
    .option('--example', 'at the first start, run one example interaction and show it', false)
    .action(async (options) => done(await serve(context, options)))
}

function addRun(program: Command, context: CliContext, done: Done): void {
  const command = program
    .command('run')
    .description('run one instruction and watch it')
    .argument('<instruction...>', 'what is to be done; - reads it from stdin')
    .option('--file <file>', 'give the run this file (repeatable)', collect, [])
    .option('--agent <id>', 'with this stored agent')
    .option('--model <name>', 'with this model')
    .option(
      '--tool <name>',
      'enable this tool (repeatable; default: code_execution, file_read, file_write)',
      collect,
      [],
    )
    .option('--skill <name>', 'with this skill (repeatable)', collect, [])
    .option('--system <text>', 'with this system instruction')
    .option('--max-seconds <n>', 'at most this long', positive)
    .option('--label <key=value>', 'put this label on it (repeatable)', collect, [])
    .option('--out <dir>', 'save its files here; without it their links are shown')
    .option('--json', 'print the final interaction as JSON and nothing else', false)
  withServerOptions(command)
    .addHelpText(
      'after',
      '\nExit codes: 0 completed, 1 failed, 2 wrong usage, 3 cancelled, 4 no server or refused, 130 Ctrl-C.',
    )
    .action(async (words, options) => done(await run(context, words, options)))
}

function addKeys(keys: Command, context: CliContext): void {
  keys
    .command('create')
    .description('issue a key; it alone goes to stdout')
    .requiredOption('--name <name>', 'what it is for')
    .option('--project <name>', 'its project, made where there is none', 'default')
    .option('--account <name>', 'the account of the project', 'default')
    .addOption(new Option('--scope <scope>', 'what it may do').choices(SCOPES).default('all'))
    .option('--expires-in-days <n>', 'let it expire', positive)
    .addOption(configOption())
    .action((options) => createKey(context, options))
  keys
    .command('list')
    .description('show the keys, without their texts')
    .option('--all', 'revoked and expired ones too', false)
    .addOption(configOption())
    .action((options) => listKeys(context, options))
  keys
    .command('revoke')
    .argument('<id>')
    .description('end a key at once')
    .addOption(configOption())
    .action((id, options) => revokeKey(context, id, options))
}

function addAccounts(accounts: Command, context: CliContext): void {
  accounts
    .command('create')
    .argument('<name>')
    .description('make an account; the service is off in it until it is switched on')
    .addOption(configOption())
    .action((name, options) => createAccount(context, name, options))
  accounts
    .command('list')
    .description('show them')
    .addOption(configOption())
    .action((options) => listAccounts(context, options))
}

function addConsole(console: Command, context: CliContext): void {
  console
    .command('link')
    .description('print a one-time link that makes whoever opens it an owner of the account')
    .option('--account <name>', 'which account', 'default')
    .option('--reset-password <email>', 'instead: a link with which this user sets a new password')
    .addOption(configOption())
    .action((options) => consoleLink(context, options))
}

function addAgents(agents: Command, context: CliContext): void {
  withServerOptions(agents.command('list').description('all agents').option('--json', 'as JSON', false)).action(
    (options) => listAgents(context, options),
  )
  withServerOptions(agents.command('get').argument('<id>').description('one agent')).action((id, options) =>
    getAgent(context, id, options),
  )
  withAgentFields(agents.command('create').description('store an agent').option('--id <slug>', 'its id')).action(
    (options) => createAgent(context, options),
  )
  withAgentFields(agents.command('update').argument('<id>').description('change what is given, keep the rest')).action(
    (id, options) => updateAgent(context, id, options),
  )
  withServerOptions(agents.command('delete').argument('<id>').description('delete an agent')).action((id, options) =>
    deleteAgent(context, id, options),
  )
}

function addSkillCommands(skills: Command, context: CliContext): void {
  withServerOptions(
    skills
      .command('add')
      .argument('<path...>')
      .description("register skills: a skill's folder or its zip, several allowed"),
  ).action((paths, options) => addSkills(context, paths, options))
  withServerOptions(
    skills.command('list').description('all that a run can name').option('--json', 'as JSON', false),
  ).action((options) => listSkills(context, options))
  withServerOptions(
    skills.command('remove').argument('<name>').description('remove a skill, or one version of it: name@3'),
  ).action((name, options) => removeSkill(context, name, options))
  skills
    .command('check')
    .argument('<dir...>')
    .description("look at skills' folders and tell every problem")
    .action((dirs) => checkSkills(context, dirs))
}

function addCredentialCommands(credentials: Command, context: CliContext): void {
  withServerOptions(
    credentials
      .command('add')
      .argument('<id>')
      .description('store one, or give it a new secret: a bearer token on stdin, or anything by --from')
      .option('--from <file>', 'its fields as JSON or YAML: type, token, refreshToken …; - reads stdin')
      .option('--name <text>', 'for people')
      .option('--host <host>', 'it may be sent to this host alone (repeatable)', collect, []),
  ).action((id, options) => addCredential(context, id, options))
  withServerOptions(
    credentials.command('list').description('all, without their secrets').option('--json', 'as JSON', false),
  ).action((options) => listCredentials(context, options))
  withServerOptions(credentials.command('remove').argument('<id>').description('forget one')).action((id, options) =>
    removeCredential(context, id, options),
  )
}

function addSettings(settings: Command, context: CliContext): void {
  const account = new Option('--account <id>', 'of this account; default: the first')
  settings
    .command('get')
    .description('show them')
    .addOption(account)
    .addOption(configOption())
    .action((options) => getSettings(context, options))
  settings
    .command('set')
    .argument('<name>', 'experimental.managedAgents')
    .argument('<value>', 'on or off')
    .description('switch one')
    .addOption(account)
    .addOption(configOption())
    .action((name, value, options) => setSetting(context, name, value, options))
}

function addRest(program: Command, context: CliContext, done: Done): void {
  program
    .command('doctor')
    .description('tell what this machine gives: isolation, limits, models, tools, and what to do about the rest')
    .addOption(configOption())
    // It knows all rooms, and every other command would load them.
    .action(async (options) => done(await (await import('./doctor.ts')).doctor(context, options)))
  const config = program.command('config').description('the configuration')
  config
    .command('check')
    .description('read it and report every problem, also variables that it names and that are not set')
    .addOption(configOption())
    .action((options) => checkConfig(context, options))
  config
    .command('reference')
    .description('print docs/configuration.md')
    .action(() => context.out.write(configReference()))
}

function configOption(): Option {
  return new Option('--config <file>', 'the configuration file; default: errand.yaml')
}

function withServerOptions(command: Command): Command {
  return command
    .option(
      '--server <url>',
      'on this server; default: ERRAND_BASE_URL, else the server running on the data directory, else in this process',
    )
    .option(
      '--key <key>',
      'its API key; default: ERRAND_API_KEY, and none is needed for the server running on the data directory',
    )
    .addOption(configOption())
}

function withAgentFields(command: Command): Command {
  return withServerOptions(
    command
      .option('--from <file>', 'its fields as JSON or YAML; - reads stdin. Flags win over it')
      .option('--name <text>', 'displayName')
      .option('--description <text>', 'description')
      .option('--system <text>', 'systemInstruction')
      .option('--model <name>', 'model')
      .option('--tool <name>', 'enable this tool (repeatable)', collect, [])
      .option('--skill <name>', 'enable this skill (repeatable)', collect, []),
  )
}

function collect(value: string, before: readonly string[]): string[] {
  return [...before, value]
}

function positive(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('It must be a whole number above 0.')
  return value
}
