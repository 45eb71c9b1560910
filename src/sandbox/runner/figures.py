"""Saves the figures and images of a Python step below outputs/."""

import os
import sys

from .system import WORKSPACE


class Figures:
    def __init__(self):
        self.saved = set()  # figures that the step saved itself, by id
        self.counts = {'figure': 0, 'image': 0}

    def watch_saving(self, module):
        """Notes which figures the code saves itself."""
        import functools

        savefig, saved = module.Figure.savefig, self.saved

        def watched(self, *args, **options):
            saved.add(id(self))
            return savefig(self, *args, **options)

        module.Figure.savefig = functools.wraps(savefig)(watched)

    def save_open(self):
        """Saves and closes the open figures of pyplot that the code has not saved."""
        pyplot = sys.modules.get('matplotlib.pyplot')
        for number in pyplot.get_fignums() if pyplot else []:
            figure = pyplot.figure(number)
            if id(figure) not in self.saved:
                path = self.new_path('figure')
                figure.savefig(path, bbox_inches='tight')
                print('[figure saved: %s]' % os.path.relpath(path, WORKSPACE))
            pyplot.close(number)
        self.saved.clear()

    def save_image(self, value):
        """Saves a value that shows itself as a PNG, such as one of PIL's images."""
        picture = getattr(type(value), '_repr_png_', None)
        data = picture(value) if picture else None
        if isinstance(data, bytes):
            path = self.new_path('image')
            with open(path, 'wb') as file:
                file.write(data)
            print('[image saved: %s]' % os.path.relpath(path, WORKSPACE))

    def new_path(self, kind):
        os.makedirs(WORKSPACE + '/outputs', exist_ok=True)
        while True:  # an earlier session may have left some
            self.counts[kind] += 1
            path = WORKSPACE + '/outputs/%s-%d.png' % (kind, self.counts[kind])
            if not os.path.lexists(path):
                return path
