"""Configurations: what a Monitor sets when it is made. One class per framework, as existing programs name them."""


class Config(object):
    """The settings that were given, by name. One that was not given leaves the job's own in force."""

    def __init__(self, **settings):
        self.settings = settings

    def __repr__(self):
        return "%s(%s)" % (type(self).__name__,
                           ", ".join("%s=%r" % item for item in sorted(self.settings.items())))


class PyTorchConfig(Config):
    pass


class TFConfig(Config):
    pass


class MPIConfig(Config):
    pass


class ElasticBatchConfig(Config):
    pass
