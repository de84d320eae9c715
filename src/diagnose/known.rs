//! Programs known by their names: databases that live by their storage, and those that fork to write a
//! snapshot of their memory. A name proves nothing, so findings name the task and let a person judge.

/// What a server is known for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// Keeps data in files and waits for syncs.
    Database,
    /// Keeps data in memory and forks to write it out: every page written meanwhile is copied.
    Forker,
}

/// The server of that task name (at most 15 bytes, as the kernel keeps it).
pub fn server(comm: &[u8]) -> Option<Server> {
    Some(match comm {
        b"redis-server" | b"keydb-server" | b"valkey-server" | b"redict-server" | b"redis-sentinel" => {
            Server::Forker
        }
        b"postgres" | b"postmaster" | b"mysqld" | b"mariadbd" | b"mongod" | b"etcd" | b"influxd"
        | b"clickhouse-serv" | b"clickhouse" | b"cockroach" | b"scylla" | b"neo4j" | b"sqlservr"
        | b"ceph-osd" | b"slapd" | b"prometheus" | b"victoria-metric" | b"dbms" | b"firebird"
        | b"tikv-server" | b"foundationdb" | b"fdbserver" | b"cassandra" | b"couchdb" => Server::Database,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole_and_as_the_kernel_cuts_them() {
        assert_eq!(server(b"redis-server"), Some(Server::Forker));
        assert_eq!(server(b"clickhouse-serv"), Some(Server::Database));
        assert_eq!(server(b"redis-server-x"), None);
        assert_eq!(server(b""), None);
    }
}
