"""The module `errand` of a Python session: the MCP tools of the run as functions, by an HTTP endpoint of the host."""

import json
import os
import sys
import time

RECONNECT_WITHIN = 60  # seconds; another worker may take over the run meanwhile
MCP_TYPES = {'string': str, 'integer': int, 'number': float, 'boolean': bool, 'array': list, 'object': dict}


class ToolError(Exception):
    """A call of an MCP tool failed, or was refused."""


def add_errand_module():
    port = os.environ.get('ERRAND_MCP_PORT')
    if port and 'errand' not in sys.modules:
        module = type(sys)('errand', 'The MCP tools of this run: errand.mcp.SERVER.TOOL(key=value).')
        ToolError.__module__ = 'errand'
        module.ToolError = ToolError
        module.mcp = McpServers(int(port))
        sys.modules['errand'] = module


class McpServers(type(sys)):
    """The MCP servers of this run, by name. A module, so that help() describes it."""

    def __init__(self, port):
        super().__init__('errand.mcp', self.__doc__)
        self.__dict__.update(_port=port, _known={})

    def _load(self):
        """Fetches the tools, as the servers list them now."""
        servers = {}
        for tool in json.loads(mcp_request(self._port, 'GET', '/tools')):
            servers.setdefault(tool['server'], []).append(tool)
        self._known.clear()
        self._known.update({name: McpServer(self, name, tools) for name, tools in servers.items()})

    def _find(self, name, error):
        if name not in self._known:
            self._load()
        if name not in self._known:
            raise error('There is no MCP server %r. The servers: %s.' % (name, ', '.join(self._known) or 'none'))
        return self._known[name]

    def __getattr__(self, name):
        if name.startswith('__'):
            raise AttributeError(name)
        return self._find(name, AttributeError)

    def __getitem__(self, name):
        return self._find(name, KeyError)

    def __dir__(self):
        self._load()
        return list(self._known)


class McpServer(type(sys)):
    def __init__(self, servers, name, tools):
        super().__init__('errand.mcp.' + name, 'The tools of the MCP server %s.' % name)
        functions = {tool['tool']: mcp_function(servers._port, tool) for tool in tools}
        self.__dict__.update(_servers=servers, _name=name, _functions=functions, __all__=list(functions))

    def _find(self, name, error):
        found = self._functions.get(name)
        if not found:
            self._servers._load()  # the server may have it now
            found = self._servers[self._name]._functions.get(name)
        if not found:
            raise error('The MCP server %s has no tool %r. dir() lists its tools.' % (self._name, name))
        return found

    def __getattr__(self, name):
        if name.startswith('__'):
            raise AttributeError(name)
        return self._find(name, AttributeError)

    def __getitem__(self, name):
        return self._find(name, KeyError)

    def __dir__(self):
        return list(self._functions)


def mcp_function(port, tool):
    def call(*given, **arguments):
        if len(given) > 1 or given and not isinstance(given[0], dict):
            raise TypeError('Pass the arguments by name, or as one dict.')
        body = {'server': tool['server'], 'tool': tool['tool'], 'args': dict(*given, **arguments)}
        return mcp_request(port, 'POST', '/call', json.dumps(body), tool['repeatable'])

    call.__name__ = call.__qualname__ = tool['tool']
    call.__module__ = 'errand.mcp.' + tool['server']
    call.__doc__ = tool['description'] + ('\n\nCan not be called from code: it needs approval.' if tool['approval'] else '')
    call.__signature__ = mcp_signature(tool['parameters'])
    return call


def mcp_signature(schema):
    """The parameters of a JSON Schema as keyword arguments. Names that Python does not allow are not shown."""
    import inspect
    import keyword

    required = schema.get('required')
    required = required if isinstance(required, list) else []
    properties = schema.get('properties')
    shown = []
    for name, one in (properties if isinstance(properties, dict) else {}).items():
        if not name.isidentifier() or keyword.iskeyword(name):
            continue
        kind = one.get('type') if isinstance(one, dict) else None
        annotation = MCP_TYPES.get(kind, inspect.Parameter.empty) if isinstance(kind, str) else inspect.Parameter.empty
        default = inspect.Parameter.empty if name in required else None
        shown.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
    return inspect.Signature(shown)


def mcp_request(port, method, path, body=None, repeatable=True):
    """Sends a request. It is sent again if it did not arrive, or if it is `repeatable`."""
    import http.client

    until = time.monotonic() + RECONNECT_WITHIN
    while True:
        connection = http.client.HTTPConnection('127.0.0.1', port)
        sent = False
        try:
            connection.connect()
            sent = True
            connection.request(method, path, body and body.encode())
            response = connection.getresponse()
            text = response.read().decode()
            if response.status != 429:  # too many calls at the same time
                break
        except (OSError, http.client.HTTPException):
            if sent and not repeatable:
                raise ToolError('connection lost; the outcome is unknown') from None
            if time.monotonic() > until:
                raise ToolError('no connection; the call was not made') from None
        finally:
            connection.close()
        time.sleep(0.1)
    if response.status != 200:
        raise ToolError(text)
    return json.loads(text) if path == '/call' and response.headers.get_content_type() == 'application/json' else text
