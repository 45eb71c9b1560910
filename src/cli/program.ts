/** The commands, their flags and their help: a table of contents. Each command is implemented in a file of its own. */
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
import { withParameterFlags } from './parameter-flags.ts'
import { run } from './run.ts'
import { serve } from './serve.ts'
import { getSettings, setSetting } from './settings.ts'
import { addSkills, checkSkills, listSkills, removeSkill } from './skills.ts'
import { showWebhookSecret } from './webhooks.ts'

/** Commands that choose their exit code pass it to `done`. The others exit with 0, or with the code of the Exit that they throw. */
export function createProgram(context: CliContext, done: (code: number) => void): Command {
  const program = new Command('errand')
    .description(
      'Self-hosted managed agents: an instruction in, an isolated Linux sandbox, a streamed trace and an answer out.',
    )
    .version(VERSION, '-V, --version')
    .configureOutput({ writeOut: context.out.write, writeErr: context.err.write })
    .exitOverride()
    .showHelpAfterError('(run with --help for usage)')
  addServe(program, context, done)
  addRun(program, context, done)
  addKeys(program.command('keys').description('manage API keys (in the data directory of this machine)'), context)
  addAgents(program.command('agents').description('manage stored agents'), context)
  addSkillCommands(
    program.command('skills').description('manage skills: instructions, scripts and references for runs'),
    context,
  )
  addCredentialCommands(
    program.command('credentials').description('manage credentials: secrets that runs use by id'),
    context,
  )
  program
    .command('webhooks')
    .description('manage webhooks (in the data directory of this machine)')
    .command('secret')
    .description('print the secret that signs the webhooks of a project')
    .option('--project <name>', 'project', 'default')
    .addOption(configOption())
    .action((options) => showWebhookSecret(context, options))
  program
    .command('audit')
    .description('show audit records (in the data directory of this machine)')
    .command('removed')
    .description(
      'list the interactions that were removed last: when, by which key or by retention, and what they contained',
    )
    .option('--limit <count>', 'maximum number of entries', positive, 50)
    .option('--json', 'print JSON', false)
    .addOption(configOption())
    .action((options) => listRemoved(context, options))
  addAccounts(program.command('accounts').description('manage accounts (in the database of this server)'), context)
  addConsole(program.command('console').description('manage access to the web console'), context)
  addSettings(program.command('settings').description("manage an account's experimental settings"), context)
  addRest(program, context, done)
  refuseHelpOfUnknown(program)
  return program
}

/** Makes `errand nonsense --help` an error. Commander would print the help of the group and exit with 0. */
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
    .description('start the server; SIGTERM or Ctrl-C stops it')
    .addOption(configOption())
    .option('--example', 'on the first start, run an example interaction and show it', false)
    .action(async (options) => done(await serve(context, options)))
}

function addRun(program: Command, context: CliContext, done: Done): void {
  const command = program
    .command('run')
    .description('run an instruction and show its progress')
    .argument('<instruction...>', 'what the agent should do; - reads it from stdin')
    .option('--file <file>', 'input file (repeatable)', collect, [])
    .option('--agent <id>', 'id of a stored agent')
    .option('--model <name>', 'model')
    .option('--tool <name>', 'tool to enable (repeatable; default: code_execution, file_read, file_write)', collect, [])
    .option('--skill <name>', 'skill to give to the run (repeatable)', collect, [])
    .option('--system <text>', 'system instruction')
    .option('--max-seconds <n>', 'maximum duration of the run, in seconds', positive)
    .option('--label <key=value>', 'label of the interaction (repeatable)', collect, [])
    .option('--out <dir>', 'save output files in this directory; default: print their links')
    .option('--json', 'print only the final interaction, as JSON', false)
  withServerOptions(withParameterFlags(command))
    .addHelpText(
      'after',
      '\nExit codes: 0 completed, 1 failed, 2 wrong usage, 3 cancelled, 4 no server or refused, 130 Ctrl-C.',
    )
    .action(async (words, options) => done(await run(context, words, options)))
}

function addKeys(keys: Command, context: CliContext): void {
  keys
    .command('create')
    .description('create a key and print it on stdout')
    .requiredOption('--name <name>', 'name of the key, for people')
    .option('--project <name>', 'project of the key; created if it does not exist', 'default')
    .option('--account <name>', 'account of the project', 'default')
    .addOption(new Option('--scope <scope>', 'permissions of the key').choices(SCOPES).default('all'))
    .option('--expires-in-days <n>', 'expire the key after this many days', positive)
    .addOption(configOption())
    .action((options) => createKey(context, options))
  keys
    .command('list')
    .description('list the keys, without the keys themselves')
    .option('--all', 'include revoked and expired keys', false)
    .addOption(configOption())
    .action((options) => listKeys(context, options))
  keys
    .command('revoke')
    .argument('<id>')
    .description('revoke a key immediately')
    .addOption(configOption())
    .action((id, options) => revokeKey(context, id, options))
}

function addAccounts(accounts: Command, context: CliContext): void {
  accounts
    .command('create')
    .argument('<name>')
    .description('create an account; the service is off in it until you switch it on')
    .addOption(configOption())
    .action((name, options) => createAccount(context, name, options))
  accounts
    .command('list')
    .description('list accounts')
    .addOption(configOption())
    .action((options) => listAccounts(context, options))
}

function addConsole(console: Command, context: CliContext): void {
  console
    .command('link')
    .description('print a one-time link; the person who opens it becomes an owner of the account')
    .option('--account <name>', 'account', 'default')
    .option('--reset-password <email>', 'print a link with which this user sets a new password instead')
    .addOption(configOption())
    .action((options) => consoleLink(context, options))
}

function addAgents(agents: Command, context: CliContext): void {
  withServerOptions(agents.command('list').description('list agents').option('--json', 'print JSON', false)).action(
    (options) => listAgents(context, options),
  )
  withServerOptions(agents.command('get').argument('<id>').description('show an agent')).action((id, options) =>
    getAgent(context, id, options),
  )
  withAgentFields(
    agents.command('create').description('create an agent').option('--id <slug>', 'id of the agent'),
  ).action((options) => createAgent(context, options))
  withAgentFields(agents.command('update').argument('<id>').description('change the given fields of an agent')).action(
    (id, options) => updateAgent(context, id, options),
  )
  withServerOptions(agents.command('delete').argument('<id>').description('delete an agent')).action((id, options) =>
    deleteAgent(context, id, options),
  )
}

function addSkillCommands(skills: Command, context: CliContext): void {
  withServerOptions(
    skills.command('add').argument('<path...>').description('upload skills; each path is a folder or a zip'),
  ).action((paths, options) => addSkills(context, paths, options))
  withServerOptions(skills.command('list').description('list skills').option('--json', 'print JSON', false)).action(
    (options) => listSkills(context, options),
  )
  withServerOptions(
    skills.command('remove').argument('<name>').description('remove a skill, or one version of it (name@3)'),
  ).action((name, options) => removeSkill(context, name, options))
  skills
    .command('check')
    .argument('<dir...>')
    .description('check skill folders and report every problem')
    .action((dirs) => checkSkills(context, dirs))
}

function addCredentialCommands(credentials: Command, context: CliContext): void {
  withServerOptions(
    credentials
      .command('add')
      .argument('<id>')
      .description(
        'store a credential, or replace its secret; reads a bearer token from stdin, other types with --from',
      )
      .option('--from <file>', 'JSON or YAML file with its fields (type, token, refreshToken, …); - reads stdin')
      .option('--name <text>', 'name, for people')
      .option('--host <host>', 'restrict the credential to this host (repeatable)', collect, []),
  ).action((id, options) => addCredential(context, id, options))
  withServerOptions(
    credentials
      .command('list')
      .description('list credentials, without their secrets')
      .option('--json', 'print JSON', false),
  ).action((options) => listCredentials(context, options))
  withServerOptions(credentials.command('remove').argument('<id>').description('remove a credential')).action(
    (id, options) => removeCredential(context, id, options),
  )
}

function addSettings(settings: Command, context: CliContext): void {
  const account = new Option('--account <id>', 'id of the account; default: the first account')
  settings
    .command('get')
    .description('show the settings')
    .addOption(account)
    .addOption(configOption())
    .action((options) => getSettings(context, options))
  settings
    .command('set')
    .argument('<name>', 'experimental.managedAgents')
    .argument('<value>', 'on or off')
    .description('switch a setting on or off')
    .addOption(account)
    .addOption(configOption())
    .action((name, value, options) => setSetting(context, name, value, options))
}

function addRest(program: Command, context: CliContext, done: Done): void {
  program
    .command('doctor')
    .description('check this machine: isolation, limits, models and tools, and how to fix what is missing')
    .addOption(configOption())
    // Loaded on demand: it imports every room.
    .action(async (options) => done(await (await import('./doctor.ts')).doctor(context, options)))
  const config = program.command('config').description('check and document the configuration')
  config
    .command('check')
    .description('report every problem of the configuration, including variables that it names and that are not set')
    .addOption(configOption())
    .action((options) => checkConfig(context, options))
  config
    .command('reference')
    .description('print the reference of all settings (docs/configuration.md)')
    .action(() => context.out.write(configReference()))
}

function configOption(): Option {
  return new Option('--config <file>', 'configuration file; default: errand.yaml')
}

function withServerOptions(command: Command): Command {
  return command
    .option(
      '--server <url>',
      'address of the server; default: ERRAND_BASE_URL, else the server that runs on the data directory, else this process',
    )
    .option('--key <key>', 'API key; default: ERRAND_API_KEY; not needed for a server that runs on the data directory')
    .addOption(configOption())
}

function withAgentFields(command: Command): Command {
  const fields = withParameterFlags(
    command
      .option('--from <file>', 'JSON or YAML file with its fields; - reads stdin. Flags override it')
      .option('--name <text>', 'displayName')
      .option('--description <text>', 'description')
      .option('--system <text>', 'systemInstruction')
      .option('--model <name>', 'model')
      .option('--tool <name>', 'tool to enable (repeatable)', collect, [])
      .option('--skill <name>', 'skill to enable (repeatable)', collect, []),
  )
  return withServerOptions(fields)
}

function collect(value: string, before: readonly string[]): string[] {
  return [...before, value]
}

function positive(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('It must be a whole number above 0.')
  return value
}
