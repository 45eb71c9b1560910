"""What code finds inside the sandbox, for the model's context."""

import importlib.util
import os
import platform
import shutil
import subprocess

# Module → its usual name. A model that does not know of a package would do without it.
PACKAGES = {
    'numpy': 'numpy', 'pandas': 'pandas', 'polars': 'polars', 'pyarrow': 'pyarrow', 'scipy': 'scipy', 'sympy': 'sympy',
    'sklearn': 'scikit-learn', 'statsmodels': 'statsmodels', 'matplotlib': 'matplotlib', 'seaborn': 'seaborn',
    'plotly': 'plotly', 'PIL': 'Pillow', 'cv2': 'opencv', 'openpyxl': 'openpyxl', 'xlsxwriter': 'XlsxWriter',
    'docx': 'python-docx', 'pptx': 'python-pptx', 'pypdf': 'pypdf', 'pdfplumber': 'pdfplumber', 'reportlab': 'reportlab',
    'requests': 'requests', 'httpx': 'httpx', 'yaml': 'PyYAML', 'lxml': 'lxml', 'bs4': 'beautifulsoup4', 'nltk': 'nltk',
}
PROGRAMS = {
    'bash': 'bash', 'git': 'git', 'jq': 'jq', 'rg': 'ripgrep', 'sqlite3': 'sqlite3', 'curl': 'curl',
    'pdftotext': 'pdftotext and pdftoppm (poppler)', 'qpdf': 'qpdf', 'tesseract': 'tesseract', 'convert': 'ImageMagick',
    'soffice': 'LibreOffice', 'pandoc': 'pandoc', 'ffmpeg': 'ffmpeg', 'gcc': 'gcc', 'unzip': 'unzip', 'zip': 'zip',
}
# The binaries themselves: a distribution's wrapper scripts add flags of their own.
BROWSERS = (
    '/usr/lib/chromium/chromium-headless-shell',
    '/usr/lib/chromium/chromium',
    '/usr/lib/chromium-browser/chromium-browser',
    '/opt/google/chrome/chrome',
)


def describe_inside():
    """`Python 3.11 (standard library), Node 24, bash, git`."""
    packages = [name for module, name in PACKAGES.items() if importlib.util.find_spec(module)]
    python = '.'.join(platform.python_version_tuple()[:2])
    inside = ['Python %s (%s)' % (python, ', '.join(packages) or 'standard library')]
    version = node_version()
    inside.append('Node %s' % version if version else 'no JavaScript')
    inside += [name for program, name in PROGRAMS.items() if shutil.which(program)]
    return ', '.join(inside)


def node_version():
    node = shutil.which('node')
    try:
        version = subprocess.run([node, '--version'], capture_output=True, text=True, timeout=10).stdout if node else ''
    except (OSError, subprocess.TimeoutExpired):
        return ''
    return version.strip().lstrip('v').split('.')[0]


def find_browser():
    return next((path for path in BROWSERS if os.access(path, os.X_OK)), None)
