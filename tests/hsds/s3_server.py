"""An S3 server on the loopback, of moto. It has its objects in memory. usage: s3_server.py BUCKET; it prints its URL."""

import os
import sys
import threading

os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test")

import boto3
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1").create_bucket(Bucket=sys.argv[1])
print(f"http://{host}:{port}", flush=True)
threading.Event().wait()
