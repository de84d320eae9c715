//! Recognises servers whose performance depends on storage or memory, by task name; servers on a Java virtual machine by
//! its command line. A name proves nothing, so findings always name the task.

/// What a server is known to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerKind {
    /// Keeps its data in files and waits for syncs.
    Database,
    /// Keeps its data in memory and forks to save it: every page written meanwhile is copied.
    ForksForSnapshots,
}

/// The kind of the server with this task name (at most 15 bytes: the kernel truncates it).
pub(super) fn server_kind(comm: &[u8]) -> Option<ServerKind> {
    Some(match comm {
        b"redis-server" | b"keydb-server" | b"valkey-server" | b"redict-server" => ServerKind::ForksForSnapshots,
        b"postgres" | b"postmaster" | b"mysqld" | b"mariadbd" | b"mongod" | b"etcd" | b"influxd"
        | b"clickhouse-serv" | b"clickhouse" | b"cockroach" | b"scylla" | b"neo4j" | b"sqlservr" | b"ceph-osd"
        | b"slapd" | b"prometheus" | b"victoria-metric" | b"dbms" | b"firebird" | b"tikv-server" | b"foundationdb"
        | b"fdbserver" | b"cassandra" | b"couchdb" => ServerKind::Database,
        _ => return None,
    })
}

/// Whether a command line is that of a sentinel (`redis-server *:26379 [sentinel]`), which watches servers and never forks.
pub(super) fn is_sentinel(cmdline: &[u8]) -> bool {
    cmdline.trim_ascii_end().ends_with(b"[sentinel]")
}

/// Prefixes of the main classes of Java servers that keep their data in files.
const JAVA_SERVER_CLASSES: &str = "\
    org.apache.cassandra.service. org.neo4j.server. com.neo4j.server. org.elasticsearch.bootstrap. \
    org.opensearch.bootstrap. kafka.Kafka org.apache.zookeeper.server. org.apache.hadoop.hdfs.server. \
    org.apache.hadoop.hbase.regionserver. org.apache.hadoop.hbase.master. org.apache.bookkeeper.server. \
    org.apache.pulsar.PulsarStandaloneStarter org.apache.activemq.artemis.boot.Artemis org.apache.ignite.startup. \
    com.orientechnologies.orient.server. org.h2.tools.Server org.hsqldb.server.";
/// Properties that only servers are started with, for command lines that are cut off before the main class.
const JAVA_SERVER_PROPERTIES: &str = "\
    -Dcassandra.storagedir= -Dcassandra.logdir= -Des.path.home= -Dopensearch.path.home= -Dkafka.logs.dir= \
    -Dzookeeper.log.dir= -Dsolr.solr.home=";
/// Options of `java` whose value is the next argument.
const JAVA_OPTIONS_WITH_VALUE: &str = "\
    -cp -classpath --class-path -p --module-path --upgrade-module-path --add-modules --add-opens --add-exports \
    --add-reads --limit-modules --enable-native-access";

/// The kind of the server that a Java virtual machine runs, by its command line with spaces between the arguments.
pub(super) fn java_server_kind(comm: &[u8], cmdline: &[u8]) -> Option<ServerKind> {
    if comm != b"java" {
        return None;
    }
    let mut args = cmdline.split(|b| *b == b' ').filter_map(|arg| std::str::from_utf8(arg).ok());
    let program = args.next()?;
    if program.rsplit('/').next() != Some("java") {
        return None;
    }
    let matches = |arg: &str, prefixes: &str| prefixes.split(' ').any(|prefix| arg.starts_with(prefix));
    let mut has_property = false;
    while let Some(arg) = args.next() {
        match arg {
            // `-m MODULE/CLASS`.
            "-m" | "--module" => {
                let (_, class) = args.next()?.split_once('/')?;
                return matches(class, JAVA_SERVER_CLASSES).then_some(ServerKind::Database);
            }
            // The main class is in the file; only the properties are visible.
            "-jar" => break,
            option if JAVA_OPTIONS_WITH_VALUE.split(' ').any(|o| o == option) => drop(args.next()),
            option if option.starts_with('-') => has_property |= matches(option, JAVA_SERVER_PROPERTIES),
            "" => {}
            class => return matches(class, JAVA_SERVER_CLASSES).then_some(ServerKind::Database),
        }
    }
    has_property.then_some(ServerKind::Database)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_names_match_whole_truncated_comms() {
        assert_eq!(server_kind(b"redis-server"), Some(ServerKind::ForksForSnapshots));
        assert_eq!(server_kind(b"clickhouse-serv"), Some(ServerKind::Database));
        assert_eq!(server_kind(b"redis-server-x"), None);
        assert_eq!(server_kind(b"redis-sentinel"), None, "it keeps no data");
        assert_eq!(server_kind(b""), None);
    }

    #[test]
    fn a_sentinel_is_told_by_its_command_line() {
        assert!(is_sentinel(b"/usr/bin/redis-server *:26379 [sentinel] "));
        assert!(!is_sentinel(b"/usr/bin/redis-server 127.0.0.1:6379"));
    }

    #[test]
    fn java_servers_are_recognised_by_main_class_or_property() {
        let is = |line: &str| java_server_kind(b"java", line.as_bytes()).is_some();
        for line in [
            "/usr/bin/java -Xmx8G -cp /etc/cassandra:/usr/share/x.jar org.apache.cassandra.service.CassandraDaemon",
            "java -server --add-opens java.base/java.nio=ALL-UNNAMED org.neo4j.server.CommunityEntryPoint --home-dir=/x",
            "/opt/jdk/bin/java -Xms1g -m org.elasticsearch.server/org.elasticsearch.bootstrap.Elasticsearch",
            "java -Dkafka.logs.dir=/var/log -cp libs/a.jar:libs/b.jar kafka.Kafka config/server.properties",
            "java -cp /zk/lib org.apache.zookeeper.server.quorum.QuorumPeerMain zoo.cfg",
            // Cut off at 4 KiB within the class path.
            "java -Xmx1G -Dkafka.logs.dir=/var/log -cp libs/a.jar:libs/b.j",
            "java -Dsolr.solr.home=/var/solr/data -jar start.jar --module=http",
        ] {
            assert!(is(line), "{line}");
        }
    }

    #[test]
    fn other_java_programs_are_not_recognised_as_servers() {
        let is = |comm: &str, line: &[u8]| java_server_kind(comm.as_bytes(), line).is_some();
        for line in [
            "",
            " ",
            "java",
            "java -cp",
            "java -m org.elasticsearch.server",
            "java -cp org.apache.cassandra.service.CassandraDaemon Main",
            "java Main org.apache.cassandra.service.CassandraDaemon -Dcassandra.logdir=/x",
            "java -Dkafka.logs.dir=/x -cp libs kafka.admin.TopicCommand --list",
            "java org.apache.cassandra.tools.NodeTool status",
            "vim org.apache.cassandra.service.CassandraDaemon",
            "/tmp/java/ kafka.Kafka",
        ] {
            assert!(!is("java", line.as_bytes()), "{line}");
        }
        assert!(!is("bash", b"java kafka.Kafka"), "it only calls itself so in its command line");
        assert!(!is("java", b"\xff\xfe \x1b[2J \xff"));
    }
}
