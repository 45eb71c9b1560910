"""Import hooks of a Python session: settings for pandas and matplotlib, and packages that pip installs meanwhile."""

import os
import sys


class AfterImport:
    """Calls an action with a module right after the code has imported it."""

    def __init__(self, actions):
        self.actions = actions  # name of a module → action

    def find_spec(self, name, path=None, target=None):
        import importlib.util

        action = self.actions.pop(name, None)
        spec = importlib.util.find_spec(name) if action else None
        if spec and spec.loader:
            load = spec.loader.exec_module

            def load_and_act(module):
                load(module)
                try:
                    action(module)
                except Exception:
                    pass  # another module of that name

            spec.loader.exec_module = load_and_act
        elif action:
            self.actions[name] = action  # it may be installed later
        return spec

    def act_on_loaded(self):
        """Modules that were loaded before the fork count as imported by the code."""
        for name in [name for name in self.actions if name in sys.modules]:
            self.actions.pop(name)(sys.modules[name])


class Installed:
    """Finds packages that pip has installed since the session started. Comes last on sys.meta_path."""

    def __init__(self):
        self.directory = os.path.expanduser('~/.local/lib/python%d.%d/site-packages' % sys.version_info[:2])

    def find_spec(self, name, path=None, target=None):
        import importlib.util

        return importlib.util.find_spec(name) if path is None and self.look() else None

    def look(self):
        """Adds pip's directory to sys.path, before the system's packages, as Python does at its start. True if it is new."""
        if self.directory in sys.path or not os.path.isdir(self.directory):
            return False
        import site

        known = len(sys.path)
        site.addsitedir(self.directory)
        added = sys.path[known:]
        del sys.path[known:]
        at = next((i for i, path in enumerate(sys.path) if path.endswith(('site-packages', 'dist-packages'))), known)
        sys.path[at:at] = added
        return True


def widen_tables(pandas):
    pandas.set_option('display.width', 160)
    pandas.set_option('display.max_columns', 40)


def load_site():
    """Adds site-packages, without which the runner starts (-S) to start sooner. Once in a process."""
    import site
    import warnings

    if not hasattr(site, 'loaded'):
        site.main()
        warnings.filterwarnings('ignore', message='.*non-interactive.*')  # plt.show(): the session saves the figure
        site.loaded = True
