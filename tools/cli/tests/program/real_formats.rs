//! `record` of files as other programs write them, with no option or one: the values, and what h5py reads.

use std::path::Path;

use crate::common::{h5py, new_file, python, run, run_with, text};

/// Records a file of `tests/data`; returns the columns with their types, and what `dump --json` prints.
#[track_caller]
fn recorded(file: &str, options: &[&str]) -> (tempfile::TempDir, String, String) {
    let input = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file)).unwrap();
    let (folder, _, name) = new_file();
    text(&run_with(&[&["record"], options, &[&name, "x"]].concat(), &input));
    let listed = text(&run(&["ls", &name, "x"]));
    let types = columns(listed.lines().find(|line| line.starts_with("/x ")).unwrap());
    let rows = text(&run(&["dump", "--json", &name, "x"]));
    (folder, types, rows)
}

/// The members of the compound in a line of `ls`, as `name:type`.
fn columns(line: &str) -> String {
    let members = &line[line.find('{').unwrap() + 1..line.rfind('}').unwrap()];
    let mut depth = 0;
    let members = members.split(|c| {
        depth += i32::from("([{<".contains(c)) - i32::from(")]}>".contains(c));
        c == ',' && depth == 0
    });
    let column = |member: &str| {
        let (name, kind) = member.split_once('@').unwrap();
        let kind = kind.trim_start_matches(|c: char| c.is_ascii_digit()).split(['(', '<']).next().unwrap();
        format!("{name}{kind}")
    };
    members.map(column).collect::<Vec<_>>().join(" ")
}

/// What a program says of the dataset `d`, read by h5py.
#[track_caller]
fn h5py_says(folder: &tempfile::TempDir, program: &str, wanted: &str) {
    if let Some(python) = python() {
        let program = format!("f = h5py.File(path); d = f['x']; {program}");
        assert_eq!(h5py(&python, &program, &folder.path().join("run.h5")).trim_end(), wanted);
    }
}

#[test]
fn a_syslog() {
    let (folder, types, rows) = recorded("syslog.log", &["--format=lines"]);
    assert_eq!(types, "line:vstr");
    let lines: Vec<_> = rows.lines().collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[3], "{\"line\":\"\"}");
    assert_eq!(
        lines[4],
        "{\"line\":\"Nov 24 08:00:10 gateway cron[911]: (root) CMD (\\\"/usr/lib/sa1\\\" 1 1; sync, wait)\"}"
    );
    h5py_says(&folder, "print(len(d), d['line'][1][-12:].decode())", "5 256:q8w+x/Zk");
}

#[test]
fn a_gps_track() {
    let (folder, types, rows) = recorded("gps-track.csv", &[]);
    assert_eq!(types, "time:i64le lat:f64le lon:f64le ele:f64le speed:f64le sat:i64le fix:vstr");
    assert_eq!(
        rows.lines().nth(3).unwrap(),
        "{\"time\":1795507203250000000,\"lat\":-33.8567844,\"lon\":-151.2152967,\"ele\":-1.2,\"speed\":1.49,\"sat\":10,\"fix\":\"3d\"}"
    );
    assert!(rows.lines().nth(2).unwrap().contains("\"ele\":null"));
    h5py_says(&folder, "print(d['lat'].tolist()[:2], np.isnan(d['ele'][2]))", "[52.5200066, 52.5200071] True");
}

#[test]
fn an_oscilloscope() {
    let (folder, types, rows) = recorded("oscilloscope.csv", &[]);
    assert_eq!(types, "TIME:f64le CH1:f64le CH2:f64le");
    assert_eq!(rows.lines().count(), 5);
    assert_eq!(rows.lines().next().unwrap(), "{\"TIME\":-8e-9,\"CH1\":0.02,\"CH2\":1.96}");
    let name = folder.path().join("run.h5");
    let preamble = text(&run(&["dump", name.to_str().unwrap(), "x@preamble"]));
    assert!(preamble.contains("Model,DPO2012B\\r\\nFirmware Version,1.52\\r\\n\\r\\nPoint Format,Y"), "{preamble}");
    assert!(preamble.contains("Label,,\\r\\n"), "{preamble}");
    h5py_says(
        &folder,
        "print(d['CH2'].tolist(), len(d.attrs['preamble'].splitlines()))",
        "[1.96, 1.92, -2.0, -1.96, -2.04] 11",
    );
}

#[test]
fn nested_sensor_json() {
    let (folder, types, rows) = recorded("sensor.ndjson", &[]);
    assert_eq!(
        types,
        "ts:i64le device.id:vstr device.fw:vstr env.temperature:f64le env.humidity:i64le accel:array[3] ok:enum"
    );
    assert_eq!(
        rows.lines().nth(2).unwrap(),
        "{\"ts\":1795507220000000000,\"device.id\":\"esp32-7f with a new name\",\"device.fw\":\"1.4.10\",\"env.temperature\":null,\
         \"env.humidity\":40,\"accel\":[1.0,2.0,3.0],\"ok\":false}"
    );
    h5py_says(
        &folder,
        "print(d['accel'].tolist()[0], d['device.fw'][2].decode(), d['ok'].tolist())",
        "[0.01, -0.02, 9.81] 1.4.10 [True, True, False]",
    );
}

#[test]
fn semicolons_and_decimal_commas() {
    let (folder, types, rows) = recorded("verkauf.csv", &[]);
    assert_eq!(types, "Datum:i64le Straße:vstr Menge:i64le Preis:f64le Bemerkung:vstr");
    assert_eq!(
        rows,
        "{\"Datum\":1795507200000000000,\"Straße\":\"Hauptstr. 1\",\"Menge\":3,\"Preis\":1.5,\"Bemerkung\":\"1,5 Liter; Glas\"}\n\
         {\"Datum\":1795512600000000000,\"Straße\":\"Am Ring 12\",\"Menge\":12,\"Preis\":1234.05,\"Bemerkung\":\"\"}\n\
         {\"Datum\":1795515300000000000,\"Straße\":\"\",\"Menge\":7,\"Preis\":-0.99,\"Bemerkung\":\"sagte \\\"ja\\\"\\r\\nund ging\"}\n"
    );
    h5py_says(&folder, "print(d['Preis'].tolist(), d.dtype.names[1])", "[1.5, 1234.05, -0.99] Straße");
}

#[test]
fn a_web_servers_log() {
    let (folder, types, rows) = recorded("access.log", &["--delimiter= "]);
    assert_eq!(types, "c0:vstr c1:vstr c2:vstr c3:vstr c4:vstr c5:vstr c6:i64le c7:i64le c8:vstr c9:vstr");
    assert_eq!(rows.lines().count(), 3);
    assert_eq!(
        rows.lines().nth(1).unwrap(),
        "{\"c0\":\"2001:db8::1\",\"c1\":\"-\",\"c2\":\"ada\",\"c3\":\"[24/Nov/2026:08:00:02\",\"c4\":\"+0100]\",\
         \"c5\":\"POST /api/v1/rows?x=1,2 HTTP/2.0\",\"c6\":404,\"c7\":162,\"c8\":\"-\",\"c9\":\"curl/8.5.0\"}"
    );
    h5py_says(
        &folder,
        "print(d['c7'].tolist(), d['c9'][0].decode())",
        "[5316, 162, 4294967296] Mozilla/5.0 (X11; Linux x86_64)",
    );
}

#[test]
fn a_weather_station_with_gaps() {
    let (folder, types, rows) = recorded("station.tsv", &[]);
    assert_eq!(types, "station:vstr date:i64le tmax:f64le tmin:f64le precip:f64le wind_dir:f64le remark:vstr");
    assert_eq!(
        rows.lines().nth(1).unwrap(),
        "{\"station\":\"DE-0433\",\"date\":1795219200000000000,\"tmax\":null,\"tmin\":1.4,\"precip\":3.2,\"wind_dir\":null,\"remark\":\"\"}"
    );
    h5py_says(
        &folder,
        "print(np.isnan(d['tmax']).tolist(), np.nansum(d['wind_dir']))",
        "[False, True, False, False] 565.0",
    );
}

#[test]
fn a_json_array_of_rows() {
    let (folder, types, rows) = recorded("rows.json", &[]);
    assert_eq!(types, "id:i64le name:vstr mass:f64le big:u64le tags:array[2]");
    assert_eq!(
        rows.lines().nth(1).unwrap(),
        "{\"id\":2,\"name\":\"β-decay\",\"mass\":2.0,\"big\":18446744073709551615,\"tags\":[3,4]}"
    );
    h5py_says(
        &folder,
        "print(d['big'].tolist(), d['mass'].tolist())",
        "[9007199254740993, 18446744073709551615, 0] [1.5, 2.0, -0.001]",
    );
}

#[test]
fn statistics_of_containers() {
    let (folder, types, rows) = recorded("docker-stats.ndjson", &[]);
    assert_eq!(types.split(' ').count(), 9);
    assert!(types.split(' ').all(|column| column.ends_with(":vstr")), "{types}");
    assert!(
        rows.lines().nth(1).unwrap().contains(
            "\"Name\":\"a-database-with-a-rather-long-name_1\",\"NetIO\":\"2.52GB / 1.03GB\",\"PIDs\":\"38\""
        )
    );
    h5py_says(&folder, "print([s.decode() for s in d['CPUPerc']])", "['0.07%', '101.55%']");
}

#[test]
fn columns_of_vmstat() {
    let (folder, types, rows) = recorded("vmstat.txt", &[]);
    assert_eq!(types.split(' ').count(), 17);
    assert!(types.split(' ').all(|column| column.ends_with(":i64le")), "{types}");
    assert_eq!(rows.lines().count(), 3);
    assert!(rows.lines().nth(2).unwrap().starts_with("{\"r\":13,\"b\":2,\"swpd\":512,\"free\":99144,"), "{rows}");
    h5py_says(&folder, "print(d['id'].tolist(), d['cs'].tolist())", "[97, 100, 0] [240, 201, 9201]");
}

#[test]
fn a_table_of_numpy() {
    let (folder, types, rows) = recorded("savetxt.txt", &[]);
    assert_eq!(types, "t:f64le voltage:f64le");
    assert_eq!(rows, "{\"t\":0.0,\"voltage\":1.5}\n{\"t\":0.1,\"voltage\":-0.25}\n{\"t\":0.2,\"voltage\":null}\n");
    h5py_says(&folder, "print(d.attrs['preamble'].strip())", "# written by numpy.savetxt");
}

#[test]
fn a_spreadsheet_saved_as_unicode_text() {
    let (folder, types, rows) = recorded("spreadsheet-utf16.txt", &["--decimal-comma"]);
    assert_eq!(types, "Zeit:i64le Größe:f64le Bemerkung:vstr");
    assert_eq!(
        rows,
        "{\"Zeit\":1795507200000000000,\"Größe\":1.5,\"Bemerkung\":\"erste \\\"Messung\\\"\"}\n\
         {\"Zeit\":1795507201000000000,\"Größe\":-0.25,\"Bemerkung\":\"zwei\\r\\nZeilen; 😀\"}\n\
         {\"Zeit\":1795507202000000000,\"Größe\":null,\"Bemerkung\":\"\"}\n"
    );
    h5py_says(&folder, "print(d['Größe'].tolist()[:2], d['Bemerkung'][1].decode()[-1])", "[1.5, -0.25] 😀");
}

#[test]
fn a_spreadsheet_with_a_byte_order_mark() {
    let (folder, types, rows) = recorded("spreadsheet-utf8.csv", &[]);
    assert_eq!(types, "Datum:i64le Menge:i64le Preis:f64le Kommentar:vstr");
    assert_eq!(
        rows.lines().nth(1).unwrap(),
        "{\"Datum\":1795564800000000000,\"Menge\":-1,\"Preis\":0.99,\"Kommentar\":\"a\\r\\nb\"}"
    );
    h5py_says(&folder, "print(d['Preis'].tolist(), d.dtype.names[0])", "[1234.5, 0.99, 2.0] Datum");
}

#[test]
fn a_journal_of_systemd() {
    let (folder, types, rows) = recorded("journal.ndjson", &["--on-new-key=ignore"]);
    assert_eq!(
        types,
        "__CURSOR:vstr __REALTIME_TIMESTAMP:vstr PRIORITY:vstr SYSLOG_IDENTIFIER:vstr MESSAGE:vstr _TRANSPORT:vstr"
    );
    assert_eq!(rows.lines().count(), 4);
    assert!(rows.lines().nth(2).unwrap().contains("\"MESSAGE\":\"[27,91,49,109,255]\""), "{rows}");
    h5py_says(&folder, "print(d['MESSAGE'][1].decode(), d['PRIORITY'].tolist()[3])", "invalid user \"a\" b''");
}

#[test]
fn sentences_of_a_satellite_receiver() {
    let (folder, types, rows) = recorded("receiver.nmea", &["--format=lines"]);
    assert_eq!((&*types, rows.lines().count()), ("line:vstr", 4));
    h5py_says(&folder, "print(d['line'][3].decode())", "!AIVDM,1,1,,B,177KQJ5000G?tO`K>RA1wUbN0TKH,0*5C");
}

#[test]
fn a_logic_analyzer() {
    let (folder, types, rows) = recorded("logic-analyzer.csv", &[]);
    assert_eq!(types, "Time [s]:f64le Channel 0:i64le Channel 1:i64le");
    assert_eq!(rows.lines().next().unwrap(), "{\"Time [s]\":-5e-7,\"Channel 0\":0,\"Channel 1\":1}");
    h5py_says(&folder, "print(d['Time [s]'].tolist())", "[-5e-07, 0.0, 1.25e-06, 2e-06]");
}

#[test]
fn metrics_of_prometheus() {
    let (folder, types, rows) = recorded("metrics.prom", &["--format=lines"]);
    assert_eq!((&*types, rows.lines().count()), ("line:vstr", 8));
    h5py_says(&folder, "print(d['line'][6].decode())", "something_weird{problem=\"division by zero\"} +Inf -3982045");
}

#[test]
fn a_list_of_objects_of_a_cloud() {
    let (folder, types, rows) = recorded("volumes.json", &[]);
    assert_eq!(types, "Attachments:vstr CreateTime:i64le Encrypted:enum Size:i64le Iops:f64le Tags:vstr VolumeId:vstr");
    assert_eq!(
        rows.lines().nth(1).unwrap(),
        "{\"Attachments\":\"[]\",\"CreateTime\":1795251600000000000,\"Encrypted\":true,\"Size\":500,\"Iops\":null,\
         \"Tags\":\"[{\\\"Key\\\":\\\"Name\\\",\\\"Value\\\":\\\"data\\\"}]\",\"VolumeId\":\"vol-0b2\"}"
    );
    h5py_says(
        &folder,
        "import json; print(json.loads(d['Attachments'][0])[0]['Device'], d['Size'].tolist())",
        "/dev/xvda [8, 500]",
    );
}

#[test]
fn a_logger_whose_rows_end_with_a_separator() {
    let (folder, types, rows) = recorded("logger.csv", &[]);
    assert_eq!(types, "timestamp:i64le temp_C:f64le rh_%:i64le event:vstr");
    assert_eq!(
        rows.lines().nth(2).unwrap(),
        "{\"timestamp\":1795503601000000000,\"temp_C\":null,\"rh_%\":44,\"event\":\"door, open\"}"
    );
    let times = "print((d['timestamp'] - 1795503600000000000).tolist(), str(d['temp_C'][3]))";
    h5py_says(&folder, times, "[0, 500000000, 1000000000, 1500000000] -0.0");
}

#[test]
fn a_multimeter_that_says_when_it_overflows() {
    let (folder, types, rows) = recorded("multimeter.csv", &[]);
    assert_eq!(types, "No:i64le Reading:vstr Unit:vstr Function:vstr");
    assert_eq!(
        rows.lines().next().unwrap(),
        "{\"No\":1,\"Reading\":\"1.00213E-03\",\"Unit\":\"A\",\"Function\":\"DC Current\"}"
    );
    h5py_says(&folder, "print(d['Reading'][2].decode())", "-9.9E+37");
}
